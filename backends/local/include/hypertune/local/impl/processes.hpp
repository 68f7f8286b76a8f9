// ProcessExecutor: definitions. ProcessDriver does the work.
#pragma once

#include <hypertune/local/process_driver.hpp>
#include <hypertune/local/processes.hpp>
#include <hypertune/trial/trial.hpp>

namespace hypertune::inline v0::local {

HYPERTUNE_INLINE ProcessExecutor::ProcessExecutor(ProcessOptions options)
    : driver_(std::make_unique<detail::ProcessDriver>(std::move(options))) {}
HYPERTUNE_INLINE ProcessExecutor::ProcessExecutor(ProcessExecutor&&) noexcept = default;
HYPERTUNE_INLINE ProcessExecutor& ProcessExecutor::operator=(ProcessExecutor&&) noexcept = default;
HYPERTUNE_INLINE ProcessExecutor::~ProcessExecutor() = default;

HYPERTUNE_INLINE std::vector<Host> ProcessExecutor::hosts() const { return {driver_->host()}; }
HYPERTUNE_INLINE void ProcessExecutor::start(ExecutorStart start) { driver_->start(std::move(start)); }
HYPERTUNE_INLINE void ProcessExecutor::perform(Command command) { driver_->perform(std::move(command)); }
HYPERTUNE_INLINE void ProcessExecutor::wait(Seconds deadline) { driver_->wait(deadline); }
HYPERTUNE_INLINE void ProcessExecutor::notify() { driver_->notify(); }
HYPERTUNE_INLINE void ProcessExecutor::shutdown() { driver_->shutdown(); }

}  // namespace hypertune::inline v0::local
