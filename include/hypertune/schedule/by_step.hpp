// One number per trial at each step, of all trials seen so far, for schedulers that compare step by step.
#pragma once

#include <hypertune/schedule/rung.hpp>

#include <cstddef>
#include <map>
#include <optional>

namespace hypertune::inline v0::detail {

/// For each step, keeps the best floor(fraction * n + 1/2) of its n numbers accessible. 8 bytes per number; adding one
/// is O(log n).
class ByStep {
 public:
  /// The number of trials seen at a step.
  std::size_t trials(int step) const {
    const auto found = steps_.find(step);
    return found == steps_.end() ? 0 : found->second.size();
  }

  /// The quantile of the numbers at a step, interpolated between the two nearest ones; nullopt if there are none.
  std::optional<double> quantile(int step) const;

  /// Whether at least `min_trials` trials were seen at a step and `value` is above their quantile.
  bool beyond(int step, double value, int min_trials) const {
    return trials(step) >= static_cast<std::size_t>(min_trials) && value > *quantile(step);
  }

  /// Adds a trial's number at `step`, and at the known steps that this trial has skipped since `previous`.
  void add(int previous, int step, double value, double fraction);

 private:
  double fraction_ = 0.5;
  std::map<int, TopFraction<double>> steps_;
};

}  // namespace hypertune::inline v0::detail
