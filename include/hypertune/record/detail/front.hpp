// The Pareto front of an experiment's results.
#pragma once

#include <hypertune/record/detail/feasibility.hpp>
#include <hypertune/record/pareto.hpp>
#include <hypertune/record/results.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

inline double loss_of(double value, Mode mode) {
  if (std::isnan(value)) return std::numeric_limits<double>::infinity();
  return mode == Mode::maximize ? -value : value;
}

using FrontLosses = std::vector<std::optional<std::vector<double>>>;

/// The losses of each trial's last report, for comparing several objectives. nullopt if the trial does not count: it
/// has failed, lacks an objective (or has NaN), or breaks a constraint that other trials meet, or it is not known
/// whether it does. `last(trial, metric)` points to the metric's value in the last report (null: none);
/// `meets_all(trial)`: whether the last value of each bounded metric, which may be in an earlier report, meets its
/// bound.
template <class Trials, class Last, class MeetsAll>
FrontLosses front_losses(const ExperimentInfo& info, const Trials& trials, const Last& last,
                         const MeetsAll& meets_all) {
  FrontLosses all;
  bool only_feasible = false;
  for (const auto& trial : trials) {
    all.emplace_back();
    if (trial.state == TrialState::failed) continue;
    std::vector<double> losses;
    for (const Objective& objective : info.objectives)
      if (const double* value = last(trial, objective.metric); value != nullptr && !std::isnan(*value))
        losses.push_back(loss_of(*value, objective.mode));
    if (losses.size() != info.objectives.size()) continue;
    if (!info.constraints.empty() && meets_all(trial) != only_feasible) {
      if (only_feasible) continue;
      only_feasible = true;
      std::fill(all.begin(), all.end(), std::nullopt);
    }
    all.back() = std::move(losses);
  }
  return all;
}

inline FrontLosses front_losses(const Results& results) {
  return front_losses(
      results.experiment(), results.trials(),
      [](const TrialResult& trial, const std::string& metric) { return find_metric(trial.metrics, metric); },
      [&](const TrialResult& trial) {
        const auto excesses = results.excesses(trial.trial);
        return std::all_of(excesses.begin(), excesses.end(), [](double excess) { return excess <= 0; });
      });
}

/// The indices of the trials that no other trial dominates, in order.
inline std::vector<std::size_t> front_places(FrontLosses all) {
  std::vector<std::vector<double>> losses;
  std::vector<std::size_t> places, front;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i]) continue;
    losses.push_back(std::move(*all[i]));
    places.push_back(i);
  }
  for (const std::size_t at : pareto_front(losses)) front.push_back(places[at]);
  return front;
}

}  // namespace detail

/// The trials that no other trial dominates in the objectives of the experiment, in order. A trial is represented by
/// the values of its last report, because these belong to one state of it. Failed trials and trials that lack an
/// objective (or have NaN) are never on the front. If any trial meets all constraints, only such trials are.
inline std::vector<TrialId> pareto_front(const Results& results) {
  std::vector<TrialId> front;
  for (const std::size_t i : detail::front_places(detail::front_losses(results)))
    front.push_back(results.trials()[i].trial);
  return front;
}

}  // namespace hypertune::inline v0
