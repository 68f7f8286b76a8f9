// Fifo: every trial trains until it ends by itself, or to a fixed number of steps.
#pragma once

#include <hypertune/schedule/scheduler.hpp>

namespace hypertune::inline v0 {

/// Runs the trials in the order in which they are proposed and stops none of them early.
struct Fifo {
  static constexpr const char* type = "fifo";

  int max_steps = 0;  ///< steps after which a trial is complete; 0: no limit

  static void describe(auto& self, auto&& option) {
    option("max_steps", self.max_steps, at_least(0), "steps after which a trial is complete; 0: no limit");
  }

  Decision on_report(const Progress& progress) const {
    return max_steps > 0 && progress.steps >= max_steps ? Decision::complete : Decision::proceed;
  }
  static constexpr bool multi_objective = true;  // it reads no loss at all
};

}  // namespace hypertune::inline v0
