// ProcessExecutor: definitions. ProcessDriver does the work.
#pragma once

#include <hypertune/local/process_driver.hpp>
#include <hypertune/local/processes.hpp>
#include <hypertune/trial/trial.hpp>

namespace hypertune::inline v0::local {

ProcessExecutor::ProcessExecutor(ProcessOptions options)
    : driver_(std::make_unique<detail::ProcessDriver>(std::move(options))) {}
ProcessExecutor::ProcessExecutor(ProcessExecutor&&) noexcept = default;
ProcessExecutor& ProcessExecutor::operator=(ProcessExecutor&&) noexcept = default;
ProcessExecutor::~ProcessExecutor() = default;

std::vector<Host> ProcessExecutor::hosts() const { return {driver_->host()}; }
void ProcessExecutor::start(ExecutorStart start) { driver_->start(std::move(start)); }
void ProcessExecutor::perform(Command command) { driver_->perform(std::move(command)); }
void ProcessExecutor::wait(Seconds deadline) { driver_->wait(deadline); }
void ProcessExecutor::notify() { driver_->notify(); }
void ProcessExecutor::shutdown() { driver_->shutdown(); }

}  // namespace hypertune::inline v0::local
