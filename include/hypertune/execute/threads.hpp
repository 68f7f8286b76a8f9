// ThreadExecutor: runs trials on threads of this process. The lowest overhead, but a crash ends everything.
#pragma once

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/execute/detail/executor_handle.hpp>

#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// Options of a ThreadExecutor.
struct ThreadOptions {
  double cpus = 0;                            ///< cores for all trials together; 0: all cores of the machine
  double gpus = 0;                            ///< GPUs for all trials together
  std::map<std::string, double> custom = {};  ///< further resources by name
  bool pin = false;                           ///< bind each trial's thread to the cores of its slot
  /// Maximum number of paused trials that stay in memory; further ones are ended if a checkpoint can restore them.
  std::size_t max_parked = std::numeric_limits<std::size_t>::max();
  /// Called on a trial's thread before it runs there, after a pause as well (cudaSetDevice …).
  std::function<void(const Slot&)> bind_slot = {};
};

/// Runs each trial on a thread of its own while it holds a slot: what the trial sets for its thread (cudaSetDevice, a
/// thread_local) holds until it ends or is paused. A report is usually answered within the sink's call, and the thread
/// goes on with the next step; a thread whose trial has ended takes the next launch the same way. A paused trial is a
/// suspended coroutine (or an idle object): it uses memory but no thread, and goes on with another one. At most 4,096
/// trials have threads; further ones wait until one of these ends or is paused. Threads cannot be killed: a
/// step that never returns blocks shutdown() (processes do not have this limit). A step that exceeds the hang limit
/// fails if it obeys Context::stop_requested(), as external commands do.
class ThreadExecutor : public detail::ExecutorHandle {
 public:
  explicit ThreadExecutor(ThreadOptions options = {});
  std::string name() const { return "threads"; }
  static constexpr bool runs_gangs = true;

 private:
  class State;
};

/// An executor with `cpus` cores of this machine; 0: all of them.
inline ThreadExecutor threads(double cpus = 0) { return ThreadExecutor(ThreadOptions{.cpus = cpus}); }
inline ThreadExecutor threads(ThreadOptions options) { return ThreadExecutor(std::move(options)); }

}  // namespace hypertune::inline v0
