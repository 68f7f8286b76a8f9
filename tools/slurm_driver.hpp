// Submits a sweep as a batch job of Slurm.
#pragma once

#include "cluster_support.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace hypertune::inline v0::command {

/// The batch script that runs a sweep's driver, and makes Slurm queue it again when its time is over or it is
/// preempted. `words`: hypertune and its arguments, without --resume.
std::string batch_script(const std::vector<std::string>& words, const std::filesystem::path& directory);

/// `hypertune submit --slurm`.
int submit_to_slurm(const ClusterArguments& arguments);

}  // namespace hypertune::inline v0::command
