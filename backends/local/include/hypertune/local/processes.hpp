// ProcessExecutor: runs each trial in a process of its own on this machine.
#pragma once

#include <hypertune/execute/detail/executor_handle.hpp>
#include <hypertune/local/process_options.hpp>

#include <string>
#include <utility>

namespace hypertune::inline v0 {
namespace local {

/// Runs each trial in a process of its own: a segfault, an abort, an out-of-memory kill or a hang ends that trial only.
///
/// Processes are forked by a *guardian*, which start() forks. They are copies of this program, so that any callable
/// works and memory that was filled before (a data set) is shared copy-on-write. start() should be called before the
/// program has other threads (`ht::tune` calls it before it starts any), because these do not exist in the workers.
/// However this program dies, the guardian ends all workers and everything that they started.
///
/// A process runs one trial, or one trial after another if the trainable can be reset. A paused trial stays in its
/// process, which waits without using CPU time. The output of a trial goes to trials/<id>/log. Linux only.
class ProcessExecutor : public hypertune::detail::ExecutorHandle {
 public:
  explicit ProcessExecutor(ProcessOptions options = {});
  std::string name() const { return "processes"; }
  static constexpr bool runs_gangs = true;
};

static_assert(Executor<ProcessExecutor>);

}  // namespace local

using local::ProcessExecutor;
using local::ProcessOptions;

/// `ht::processes({.pool = 4})`: trials in processes of their own, at most four concurrently.
inline ProcessExecutor processes(ProcessOptions options = {}) { return ProcessExecutor(std::move(options)); }

}  // namespace hypertune::inline v0
