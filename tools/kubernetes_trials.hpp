// Runs a sweep's trials in pods of Kubernetes.
#pragma once

#include <hypertune/config/sweep_options.hpp>
#include <hypertune/execute/executor.hpp>

#include <string>
#include <vector>

namespace hypertune::inline v0::command {

/// `file` and `set`: where the sweep was read from; the workers read it again. Error of kind `usage` if this command
/// was built without OpenSSL.
AnyExecutor kubernetes_executor_of(const Sweep& sweep, const std::string& file, const std::vector<std::string>& set);

}  // namespace hypertune::inline v0::command
