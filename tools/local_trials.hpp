// A sweep's trials on this machine: their program and their executor.
#pragma once

#include <hypertune/config/sweep_spec.hpp>
#include <hypertune/execute/executor.hpp>

#include <memory>

namespace hypertune::inline v0::command {

/// `here`: check that this machine can run the command.
std::shared_ptr<const Program> program_of(const Sweep& sweep, bool here = true);
AnyExecutor executor_of(const Sweep& sweep);

}  // namespace hypertune::inline v0::command
