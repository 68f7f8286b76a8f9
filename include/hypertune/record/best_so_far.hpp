// BestSoFar: which report made the best result so far.
#pragma once

#include <hypertune/record/feasibility.hpp>
#include <hypertune/record/front.hpp>
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

/// Judges reports as they come, by one objective and the bounds on metrics, with the rules of Results. A trial that
/// fails for good is never the best: none of its reports may be told.
class BestSoFar {
 public:
  BestSoFar(Objective objective, std::vector<MetricBound> bounds)
      : objective_(std::move(objective)), bounds_(std::move(bounds)) {}

  /// The value of the new best result; nullopt: it is no better.
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

 private:
  static constexpr double worst = std::numeric_limits<double>::infinity();
  struct Pending {  // of a trial whose bounded metrics are not all known
    std::vector<double> excesses;
    double loss = worst;
  };

  Objective objective_;
  std::vector<MetricBound> bounds_;
  std::map<TrialId, Pending> constrained_;
  double best_ = worst;
};

}  // namespace hypertune::inline v0::detail
