// ThreadExecutor: trials on threads of this process. The lowest overhead; a crash takes everything with it.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/execute/executor.hpp>

#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// What the threads may use.
struct ThreadOptions {
  double cpus = 0;                            ///< what trials may ask for in all; 0: the machine's cores
  double gpus = 0;                            ///< devices that trials may ask for
  std::map<std::string, double> custom = {};  ///< further resources by name
  bool pin = false;                           ///< bind each trial's thread to the cores of its slot
  /// Paused trials that stay in memory; further ones that a checkpoint can bring back are ended instead.
  std::size_t max_parked = std::numeric_limits<std::size_t>::max();
  /// Called on a trial's thread before it runs there (cudaSetDevice …).
  std::function<void(const Slot&)> bind_slot = {};
};

/// Runs each trial on a thread of its own while it holds a slot. A report's answer usually comes from within the sink's
/// call, and the same thread goes on with the next step; a thread whose trial has ended takes the next launch the same
/// way. A paused trial is a suspended coroutine (or an object at rest): it holds memory but no thread. Threads cannot
/// be killed: a step that never returns keeps shutdown() waiting (processes do not have this limit). A step that hangs
/// past the limit fails if it heeds Context::stop_requested(), as an external command does.
class ThreadExecutor {
 public:
  explicit ThreadExecutor(ThreadOptions options = {});
  ThreadExecutor(ThreadExecutor&&) noexcept;
  ThreadExecutor& operator=(ThreadExecutor&&) noexcept;
  ~ThreadExecutor();

  std::vector<Host> hosts() const;
  Seconds now() const { return run_clock(); }
  void start(ExecutorStart start);
  void perform(Command command);
  void wait(Seconds deadline);
  void notify();
  void shutdown();
  std::string name() const { return "threads"; }
  static constexpr bool runs_gangs = true;

 private:
  class State;
  std::unique_ptr<State> self_;
};

/// Trials on `cpus` threads' worth of this machine; 0: all its cores.
inline ThreadExecutor threads(double cpus = 0) { return ThreadExecutor(ThreadOptions{.cpus = cpus}); }
inline ThreadExecutor threads(ThreadOptions options) { return ThreadExecutor(std::move(options)); }

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/execute/impl/threads.hpp>
#endif
