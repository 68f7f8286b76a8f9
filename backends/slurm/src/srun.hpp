// How a worker is started: the arguments of srun, made of options.
#pragma once

#include <hypertune/config/slurm_options.hpp>
#include <hypertune/remote/host_list.hpp>
#include <hypertune/trial/resources.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::slurm {

/// One worker, as srun is told of it.
struct WorkerPlan {
  std::string job;                        ///< the job's name, by which squeue and scancel find it
  std::string node = {};                  ///< a node of the allocation that this runs in; empty: a job of its own
  remote::HostSpec limits = {};           ///< what trials may use of it
  std::vector<std::string> program = {};  ///< what becomes the agent, with its arguments
};

/// srun and its arguments, the program's included.
std::vector<std::string> srun_arguments(const SlurmOptions& options, const WorkerPlan& plan);

/// What srun's environment has beside this program's; without a value: has not. A job of its own knows nothing of the
/// allocation in which its driver may run.
std::map<std::string, std::optional<std::string>> srun_environment(const SlurmOptions& options, bool own_job);

/// What a worker with these options has, as far as they say.
Resources worker_resources(const SlurmOptions& options);
remote::HostSpec worker_limits(const SlurmOptions& options);

/// "14400" seconds as srun has it: 4:00:00. Slurm counts in minutes and rounds up.
std::string time_text(double seconds);

/// A text as part of a job's name: letters, digits, '.', '_' and '-', at most 60 of them.
std::string job_word(std::string_view text);

}  // namespace hypertune::inline v0::slurm
