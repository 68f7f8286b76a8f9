// One number per trial at each step, of all trials that have come so far, for schedulers that compare step by step.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/schedule/rung.hpp>

#include <cmath>
#include <cstddef>
#include <map>
#include <optional>

namespace hypertune::inline v0::detail {

/// Keeps the best floor(fraction * n + 1/2) of the n numbers of each step at hand; 8 bytes a number, O(log n) to add
/// one.
class ByStep {
 public:
  /// The trials seen at a step.
  std::size_t trials(int step) const {
    const auto found = steps_.find(step);
    return found == steps_.end() ? 0 : found->second.size();
  }

  /// The quantile of the numbers at a step, between the two nearest where it falls between them; nullopt if there are
  /// none.
  std::optional<double> quantile(int step) const;

  /// Whether `value` is above the quantile at a step to which `enough` trials have come.
  bool beyond(int step, double value, int min_trials) const {
    return trials(step) >= static_cast<std::size_t>(min_trials) && value > *quantile(step);
  }

  /// Adds a trial's number at `step`, and at the steps that others have and that this trial has jumped over since
  /// `previous`.
  void add(int previous, int step, double value, double fraction);

 private:
  double fraction_ = 0.5;
  std::map<int, TopFraction<double>> steps_;
};

}  // namespace hypertune::inline v0::detail

#ifndef HYPERTUNE_COMPILED
#include <hypertune/schedule/impl/by_step.hpp>
#endif
