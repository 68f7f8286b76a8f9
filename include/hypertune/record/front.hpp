// The Pareto front of an experiment's results.
#pragma once

#include <hypertune/record/feasibility.hpp>
#include <hypertune/record/pareto.hpp>
#include <hypertune/record/results.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

inline double loss_of(double value, Mode mode) {
  if (std::isnan(value)) return std::numeric_limits<double>::infinity();
  return mode == Mode::maximize ? -value : value;
}

}  // namespace detail

/// The trials that no other trial dominates in the objectives of the experiment, in order. A trial is represented by
/// the values of its last report, because these belong to one state of it. Failed trials and trials that lack an
/// objective (or have NaN) are never on the front. If any trial meets all constraints, only such trials are.
inline std::vector<TrialId> pareto_front(const Results& results) {
  const auto& objectives = results.experiment().objectives;
  std::vector<TrialId> trials, front;
  std::vector<std::vector<double>> losses;
  const auto& bounds = results.experiment().constraints;
  const auto feasible = [&](const TrialResult& trial) {
    for (const MetricBound& bound : bounds) {
      const double* value = find_metric(trial.metrics, bound.metric);
      if (value != nullptr ? !(detail::excess(bound, *value) <= 0) : !trial.feasible.value_or(false)) return false;
    }
    return true;
  };
  bool only_feasible = false;
  for (const TrialResult& trial : results.trials()) {
    if (trial.state == TrialState::failed) continue;
    std::vector<double> loss;
    for (const Objective& objective : objectives)
      if (const double* value = find_metric(trial.metrics, objective.metric); value != nullptr && !std::isnan(*value))
        loss.push_back(detail::loss_of(*value, objective.mode));
    if (loss.size() != objectives.size()) continue;
    if (!bounds.empty() && feasible(trial) != only_feasible) {
      if (only_feasible) continue;
      only_feasible = true;
      trials.clear();
      losses.clear();
    }
    trials.push_back(trial.trial);
    losses.push_back(std::move(loss));
  }
  for (const std::size_t i : pareto_front(losses)) front.push_back(trials[i]);
  return front;
}

}  // namespace hypertune::inline v0
