// Executors: definitions.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/execute/executor.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace hypertune::inline v0 {

RunKey key_of(const Launch& launch) { return {launch.trial, launch.seat ? launch.seat->member : 0}; }

std::string log_name(int member) { return member > 0 ? "worker-" + std::to_string(member) + ".log" : "log"; }

int Workload::useful_workers(int limit) const {
  std::int64_t at_once = limit;
  if (trials && *trials > 0) at_once = std::min(at_once, *trials);
  if (concurrency > 0) at_once = std::min(at_once, concurrency);
  return static_cast<int>(std::min<std::int64_t>(limit, at_once * std::max(1, max_workers)));
}

void AnyExecutor::start(ExecutorStart start) {
  if (self_->busy.exchange(true))
    fail(Errc::usage, "this executor runs another experiment: give each its own (copied options share theirs)");
  try {
    self_->start(std::move(start));
  } catch (...) {
    self_->busy = false;
    throw;
  }
}

void AnyExecutor::perform(Command command) { self_->perform(std::move(command)); }

AnyExecutor::AnyExecutor(const AnyExecutor& other) = default;
AnyExecutor::AnyExecutor(AnyExecutor&& other) noexcept = default;
AnyExecutor& AnyExecutor::operator=(const AnyExecutor& other) = default;
AnyExecutor& AnyExecutor::operator=(AnyExecutor&& other) noexcept = default;
AnyExecutor::~AnyExecutor() = default;

std::vector<Host> AnyExecutor::hosts() const { return self_->hosts(); }

std::string AnyExecutor::name() const { return self_->name(); }

}  // namespace hypertune::inline v0
