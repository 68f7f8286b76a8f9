// Runs a sweep's trials on Slurm, and submits a sweep as a Slurm job.
#pragma once

#include <hypertune/config/sweep_options.hpp>
#include <hypertune/execute/executor.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace hypertune::inline v0::command {

/// `file` and `set`: where the sweep was read from; the workers read it again.
AnyExecutor slurm_executor_of(const Sweep& sweep, const std::string& file, const std::vector<std::string>& set);

struct SlurmSubmission {
  std::string file;                   ///< the file of the sweep
  std::string output;                 ///< the experiment's folder; overrides the file
  std::vector<std::string> set = {};  ///< key=value, overriding the file
  std::vector<std::string> sbatch;    ///< further options of sbatch
};

/// The batch script that runs a sweep's driver, and makes Slurm queue it again when its time is over or it is
/// preempted. `words`: hypertune and its arguments, without --resume.
std::string batch_script(const std::vector<std::string>& words, const std::filesystem::path& directory);

/// `hypertune submit --slurm`.
int submit_to_slurm(const SlurmSubmission& submission);

}  // namespace hypertune::inline v0::command
