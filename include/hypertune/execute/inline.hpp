// InlineExecutor: runs one trial at a time in the caller's thread, for debugging.
#pragma once

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/execute/executor.hpp>

#include <memory>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

/// Runs everything inside wait(), in the thread that called run() on the Tuner: a breakpoint in a trial shows one
/// stack, and a debugger can stop where an exception is thrown (`catch throw`). Makes the same decisions as any other
/// executor with one slot.
class InlineExecutor {
 public:
  static constexpr bool is_synchronous = true;

  InlineExecutor();
  InlineExecutor(InlineExecutor&&) noexcept;
  InlineExecutor& operator=(InlineExecutor&&) noexcept;
  ~InlineExecutor();

  std::vector<Host> hosts() const { return {Host{.name = "localhost", .total = {.cpus = 1}}}; }
  Seconds now() const { return run_clock(); }
  std::string name() const { return "inline"; }

  void start(ExecutorStart start);
  void perform(Command command);
  void wait(Seconds deadline);
  void notify() {}
  void shutdown();

 private:
  class State;
  std::unique_ptr<State> state_;
};

inline InlineExecutor run_inline() { return {}; }

}  // namespace hypertune::inline v0
