// ProcessExecutor: definitions. ProcessDriver does the work.
#pragma once

#include <hypertune/local/process_driver.hpp>
#include <hypertune/local/processes.hpp>
#include <hypertune/trial/trial.hpp>

namespace hypertune::inline v0::local {

ProcessExecutor::ProcessExecutor(ProcessOptions options)
    : ExecutorHandle(std::make_shared<detail::ProcessDriver>(std::move(options))) {}

}  // namespace hypertune::inline v0::local
