// One number per trial at each step, of all trials that have come so far, for schedulers that compare step by step.
#pragma once

#include <hypertune/schedule/rung.hpp>

#include <cstddef>
#include <map>
#include <optional>

namespace hypertune::detail {

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
  std::optional<double> quantile(int step) const {
    const auto found = steps_.find(step);
    if (found == steps_.end()) return std::nullopt;
    const auto& all = found->second;
    if (all.quota() == 0) return all.next();
    if (all.quota() == all.size()) return all.boundary();
    const double place = fraction_ * static_cast<double>(all.size());
    if (place != static_cast<double>(all.quota())) return all.boundary();
    return all.next() == worst_loss ? worst_loss : all.boundary() / 2 + all.next() / 2;
  }

  /// Whether `value` is above the quantile at a step to which `enough` trials have come.
  bool beyond(int step, double value, int enough) const {
    return trials(step) >= static_cast<std::size_t>(enough) && value > *quantile(step);
  }

  /// Adds a trial's number at `step`, and at the steps that others have and that this trial has jumped over since
  /// `previous`.
  void add(int previous, int step, double value, double fraction) {
    fraction_ = fraction;
    steps_.try_emplace(step);
    for (auto at = steps_.upper_bound(previous); at != steps_.end() && at->first <= step; ++at) {
      const double n = static_cast<double>(at->second.size() + 1);
      at->second.add(value, static_cast<std::size_t>(fraction * n + 0.5));
    }
  }

 private:
  double fraction_ = 0.5;
  std::map<int, TopFraction<double>> steps_;
};

}  // namespace hypertune::detail
