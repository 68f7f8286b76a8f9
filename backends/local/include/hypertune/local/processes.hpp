// ProcessExecutor: each trial in a process of its own on this machine.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/local/process_options.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {
namespace local {

namespace detail {
class ProcessDriver;
}

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
  explicit ProcessExecutor(ProcessOptions options = {});
  ProcessExecutor(ProcessExecutor&&) noexcept;
  ProcessExecutor& operator=(ProcessExecutor&&) noexcept;
  ~ProcessExecutor();

  std::vector<Host> hosts() const;
  Seconds now() const { return run_clock(); }
  void start(ExecutorStart start);
  void perform(Command command);
  void wait(Seconds deadline);
  void notify();
  void shutdown();
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

#ifndef HYPERTUNE_COMPILED
#include <hypertune/local/impl/processes.hpp>
#endif
