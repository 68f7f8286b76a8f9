// ProcessExecutor: each trial in a process of its own on this machine.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/local/process_driver.hpp>

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {
namespace local {

/// Runs each trial in a process of its own: a segfault, an abort, an out-of-memory kill or a hang ends that trial only.
///
/// Processes come from a *guardian*, forked by start(): they are copies of this program, so that any callable works and
/// memory filled before (a data set) is shared copy-on-write. start() should come before the program has threads of its
/// own (`ht::tune` calls it before it starts any); of threads that exist then, the workers have nothing but the memory.
/// When this program dies, whatever the way, the guardian ends all workers and everything that they started.
///
/// A process serves one trial, or one trial after another where the trainable can be reset. A paused trial stays in its
/// process, which waits and uses no processor. What a trial prints goes to trials/<id>/log. Linux only.
class ProcessExecutor {
 public:
  explicit ProcessExecutor(ProcessOptions options = {})
      : driver_(std::make_unique<detail::ProcessDriver>(std::move(options))) {}
  ProcessExecutor(ProcessExecutor&&) noexcept = default;
  ProcessExecutor& operator=(ProcessExecutor&&) noexcept = default;

  std::vector<Host> hosts() const { return {driver_->host()}; }
  Seconds now() const { return run_clock(); }
  void start(ExecutorStart start) { driver_->start(std::move(start)); }
  void perform(Command command) { driver_->perform(std::move(command)); }
  void wait(Seconds deadline) { driver_->wait(deadline); }
  void notify() { driver_->notify(); }
  void shutdown() { driver_->shutdown(); }
  std::string name() const { return "processes"; }
  static constexpr bool runs_gangs = true;

 private:
  std::unique_ptr<detail::ProcessDriver> driver_;
};

static_assert(Executor<ProcessExecutor>);

}  // namespace local

using local::ProcessExecutor;
using local::ProcessOptions;

/// `ht::processes({.workers = 4})`: trials in processes of their own, at most four at once.
inline ProcessExecutor processes(ProcessOptions options = {}) { return ProcessExecutor(std::move(options)); }

}  // namespace hypertune::inline v0
