// BestSoFar: finds the reports that improve on the best result so far.
#pragma once

#include <hypertune/record/detail/feasibility.hpp>
#include <hypertune/record/detail/front.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/trial/report.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

/// Tests reports, in order, for a new best value of one objective under the bounds on metrics, by the rules of Results.
/// A trial that fails in the end is never the best: its reports must not be added.
class BestSoFar {
 public:
  BestSoFar(Objective objective, std::vector<MetricBound> bounds)
      : objective_(std::move(objective)), bounds_(std::move(bounds)) {}

  /// The new best value, or nullopt if there is none. It may come from an earlier report of the trial, if this report
  /// shows that the trial meets the bounds.
  std::optional<double> add(TrialId trial, const Metrics& metrics) {
    const double* value = find_metric(metrics, objective_.metric);
    double loss = value != nullptr && std::isfinite(*value) ? loss_of(*value, objective_.mode) : worst;
    if (!bounds_.empty()) {
      Pending& known = constrained_[trial];
      const bool learnt = update_excesses(known.excesses, bounds_, metrics);
      const double violated = violation(known.excesses, bounds_);
      if (std::isinf(violated)) {
        known.loss = std::min(known.loss, loss);
        return std::nullopt;
      }
      if (violated > 0) return std::nullopt;
      if (learnt) loss = std::min(loss, known.loss);
    }
    if (!std::isfinite(loss) || loss >= best_) return std::nullopt;
    best_ = loss;
    return objective_.mode == Mode::maximize ? -loss : loss;
  }
  /// The trial reports no more: frees what is kept for it.
  void ended(TrialId trial) { constrained_.erase(trial); }

 private:
  static constexpr double worst = std::numeric_limits<double>::infinity();
  struct Pending {  // a trial whose bounded metrics are not all known yet
    std::vector<double> excesses;
    double loss = worst;
  };

  Objective objective_;
  std::vector<MetricBound> bounds_;
  std::map<TrialId, Pending> constrained_;
  double best_ = worst;
};

}  // namespace hypertune::inline v0::detail
