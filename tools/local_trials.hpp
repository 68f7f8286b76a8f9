// A sweep's trials on this machine: what they run, and on what.
#pragma once

#include <hypertune/config/sweep_spec.hpp>
#include <hypertune/execute/executor.hpp>

#include <memory>

namespace hypertune::inline v0::command {

/// `here`: its command must be one that this machine can run.
std::shared_ptr<const Program> program_of(const Sweep& sweep, bool here = true);
AnyExecutor executor_of(const Sweep& sweep);

}  // namespace hypertune::inline v0::command
