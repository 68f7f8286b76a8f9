// Starting a worker: the arguments of sbatch and srun, made from the options.
#pragma once

#include <hypertune/config/slurm_options.hpp>
#include <hypertune/remote/host_list.hpp>
#include <hypertune/trial/resources.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::slurm {

/// One worker to start.
struct WorkerPlan {
  std::string job;                        ///< name of the job, for squeue and scancel
  std::string comment = {};               ///< of the job: whose it is, for people who look at it
  std::string node = {};                  ///< a node of the current allocation; empty: a separate job
  remote::HostOptions limits = {};        ///< what trials may use of the worker
  std::vector<std::string> program = {};  ///< the program that becomes the agent, with its arguments
};

/// sbatch and its arguments, for a separate job. Its script comes from standard input.
std::vector<std::string> sbatch_arguments(const SlurmOptions& options, const WorkerPlan& plan);

/// srun and its arguments, including the program: a step in job `id`, or in the current allocation.
std::vector<std::string> srun_arguments(const SlurmOptions& options, const WorkerPlan& plan, std::uint64_t id = 0);

/// The script of a worker's job. The job lasts as long as the step that its driver starts there: it ends `orphan`
/// seconds after its start if there was none by then, and shortly after the step's end.
std::string job_script(Seconds orphan);

/// Changes to the environment for sbatch and srun; nullopt removes a variable. A separate job gets no variables of the
/// allocation in which its driver may run.
std::map<std::string, std::optional<std::string>> srun_environment(const SlurmOptions& options, bool own_job);

/// The resources of a worker with these options, as far as the options give them.
Resources worker_resources(const SlurmOptions& options);
remote::HostOptions worker_limits(const SlurmOptions& options);

/// A duration in the format of srun: 14400 seconds are "4:00:00". Slurm counts in minutes and rounds up.
std::string time_text(double seconds);

/// Converts a text to a part of a job's name: letters, digits, '.', '_' and '-', at most 60 characters.
std::string job_word(std::string_view text);

}  // namespace hypertune::inline v0::slurm
