// One number per trial at each step, of all trials seen so far, for schedulers that compare step by step.
#pragma once

#include <hypertune/schedule/detail/rung.hpp>
#include <hypertune/schedule/reason.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <cstddef>
#include <map>
#include <optional>

namespace hypertune::inline v0::detail {

/// What a scheduler that compares step by step knows of a trial that runs.
struct StepTrial {
  int steps = 0;
  double best = worst_loss;
};

/// Limits of such schedulers; see their members of the same names.
struct StepLimits {
  int grace_period, min_trials, max_steps;
};

/// For each step, keeps the best floor(fraction * n + 1/2) of its n numbers accessible. 8 bytes per number; adding one
/// is O(log n).
class ByStep {
 public:
  /// Decides on a trial that has done `steps`: it is stopped if its best loss is above the quantile of the others'
  /// numbers, which `verdict` then describes. Its own number is added.
  Decision judge(StepTrial& trial, int steps, const StepLimits& limits, double number, double fraction,
                 RungVerdict& verdict);

 private:
  // The number of trials seen at a step.
  std::size_t trials(int step) const {
    const auto found = steps_.find(step);
    return found == steps_.end() ? 0 : found->second.size();
  }

  // The quantile of the numbers at a step, interpolated between the two nearest ones; nullopt if there are none.
  std::optional<double> quantile(int step) const;

  // Adds a trial's number at `step`, and at the known steps that this trial has skipped since `previous`.
  void add(int previous, int step, double value, double fraction);
  double fraction_ = 0.5;
  std::map<int, TopFraction<double>> steps_;
};

}  // namespace hypertune::inline v0::detail
