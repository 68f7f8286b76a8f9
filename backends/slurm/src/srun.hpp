// Starting a worker: the arguments of srun, made from the options.
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

/// One worker to start with srun.
struct WorkerPlan {
  std::string job;                        ///< name of the job, for squeue and scancel
  std::string node = {};                  ///< a node of the current allocation; empty: a separate job
  remote::HostSpec limits = {};           ///< what trials may use of the worker
  std::vector<std::string> program = {};  ///< the program that becomes the agent, with its arguments
};

/// srun and its arguments, including the program.
std::vector<std::string> srun_arguments(const SlurmOptions& options, const WorkerPlan& plan);

/// Changes to the environment for srun; nullopt removes a variable. A separate job gets no variables of the allocation
/// in which its driver may run.
std::map<std::string, std::optional<std::string>> srun_environment(const SlurmOptions& options, bool own_job);

/// The resources of a worker with these options, as far as the options give them.
Resources worker_resources(const SlurmOptions& options);
remote::HostSpec worker_limits(const SlurmOptions& options);

/// A duration in the format of srun: 14400 seconds are "4:00:00". Slurm counts in minutes and rounds up.
std::string time_text(double seconds);

/// Converts a text to a part of a job's name: letters, digits, '.', '_' and '-', at most 60 characters.
std::string job_word(std::string_view text);

}  // namespace hypertune::inline v0::slurm
