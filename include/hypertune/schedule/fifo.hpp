// Fifo: every trial trains as long as it wants to, or to a fixed number of steps.
#pragma once

#include <hypertune/schedule/scheduler.hpp>

#include <string>

namespace hypertune {

/// Runs the trials in the order they are proposed and stops none of them.
struct Fifo {
  int max = 0;  ///< steps after which a trial is complete; 0: when it ends by itself

  void check() const {
    if (max < 0) fail(Errc::usage, "fifo: max is {}, but must be 0 (no limit) or a number of steps", max);
  }
  Decision on_report(const Progress& progress) const {
    return max > 0 && progress.steps >= max ? Decision::complete : Decision::go_on;
  }
  int max_steps() const { return max; }
  std::string name() const { return "fifo"; }
  static constexpr bool multi_objective = true;  // it reads no loss at all
};

}  // namespace hypertune
