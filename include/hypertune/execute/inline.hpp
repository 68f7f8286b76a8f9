// InlineExecutor: runs one trial at a time in the caller's thread, for debugging.
#pragma once

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/execute/detail/executor_handle.hpp>

#include <memory>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

/// Runs everything inside wait(), in the thread that called run() on the Tuner: a breakpoint in a trial shows one
/// stack, and a debugger can stop where an exception is thrown (`catch throw`). Makes the same decisions as any other
/// executor with one slot.
class InlineExecutor : public detail::ExecutorHandle {
 public:
  static constexpr bool is_synchronous = true;

  InlineExecutor();
  std::string name() const { return "inline"; }

 private:
  class State;
};

inline InlineExecutor run_inline() { return {}; }

}  // namespace hypertune::inline v0
