// Runs a sweep's trials on the machines of a CLUSTER.yaml, whose number follows the queue of trials.
#pragma once

#include <hypertune/cluster/executor.hpp>
#include <hypertune/config/sweep_options.hpp>

#include <string>
#include <vector>

namespace hypertune::inline v0::command {

/// `file` and `set`: where the sweep was read from.
ClusterExecutor cluster_executor_of(const Sweep& sweep, const std::string& file, const std::vector<std::string>& set);

}  // namespace hypertune::inline v0::command
