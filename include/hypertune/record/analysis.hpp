// Analysis of an experiment's results: importance of parameters, Pareto front, best value so far.
#pragma once

#include <hypertune/detail/stable_sort.hpp>
#include <hypertune/record/detail/feasibility.hpp>
#include <hypertune/record/detail/front.hpp>
#include <hypertune/record/fanova.hpp>
#include <hypertune/record/pareto.hpp>
#include <hypertune/record/results.hpp>
#include <hypertune/space/space.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

/// How much of the variation of the results one parameter explains. See fanova().
struct Importance {
  std::string name;
  double share = 0;     ///< `variance` divided by its sum over all parameters; 0 if nothing varies
  double variance = 0;  ///< share of the whole variance; the difference between the sum and 1 is due to interactions
  friend bool operator==(const Importance&, const Importance&) = default;
};

namespace detail {

inline std::vector<Importance> ranked_importance(std::vector<std::string> names, const std::vector<double>& variances) {
  double sum = 0;
  for (const double v : variances) sum += v;
  std::vector<Importance> out;
  for (std::size_t d = 0; d < names.size(); ++d) {
    const double variance = d < variances.size() ? variances[d] : 0;
    out.push_back({std::move(names[d]), sum > 0 ? variance / sum : 0, variance});
  }
  hypertune::detail::stable_sort(out.begin(), out.end(),
                                 [](const auto& a, const auto& b) { return a.share > b.share; });
  return out;
}

}  // namespace detail

/// The parameters of `space` by importance, the most important first. Constants and derived parameters have share 0.
inline std::vector<Importance> importance(const SearchSpace& space, std::span<const Point> points,
                                          std::span<const double> losses, const FanovaOptions& options = {}) {
  std::vector<std::vector<double>> units;
  units.reserve(points.size());
  std::vector<std::string> names;
  for (std::size_t d = 0; d < space.size(); ++d) names.push_back(space.name(d));
  for (const Point& point : points) {
    units.push_back(space.to_unit(point));
    for (std::size_t d = 0; d < space.size(); ++d)
      if (space.domain(d).kind == DomainKind::derived || space.domain(d).kind == DomainKind::constant)
        units.back()[d] = 0.5;  // a constant coordinate explains nothing
  }
  return detail::ranked_importance(std::move(names), fanova(units, losses, options));
}

/// The same if only the configurations are known, not the space. A number is represented by its rank among the values
/// that were tried; text and flags are categories. Importance is then measured over the tried configurations.
inline std::vector<Importance> importance(std::span<const Params> configurations, std::span<const double> losses,
                                          const FanovaOptions& options = {}) {
  std::vector<std::string> names;
  std::unordered_map<std::string, std::size_t> index;
  std::vector<std::vector<std::pair<std::size_t, Value>>> values;  // per parameter: result, value
  for (std::size_t i = 0; i < configurations.size(); ++i)
    for (const auto& [name, value] : configurations[i]) {
      const auto [found, added] = index.emplace(name, names.size());
      if (added) {
        names.push_back(name);
        values.emplace_back();
      }
      values[found->second].emplace_back(i, value);
    }
  std::vector<std::vector<double>> units(configurations.size(),
                                         std::vector<double>(names.size(), std::numeric_limits<double>::quiet_NaN()));
  for (std::size_t d = 0; d < names.size(); ++d) {
    auto& column = values[d];
    const auto number = [](const Value& value) {
      if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
      if (const auto* real = std::get_if<double>(&value)) return *real;
      return std::numeric_limits<double>::quiet_NaN();
    };
    // Numbers by value, then NaN, flags and text by their text form. Ties share the middle of their ranks.
    std::map<std::pair<std::pair<bool, double>, std::string>, std::vector<std::size_t>> groups;
    for (const auto& [row, value] : column) {
      const double x = number(value);
      groups[{{std::isnan(x), std::isnan(x) ? 0.0 : x}, std::isnan(x) ? to_string(value) : std::string()}].push_back(
          row);
    }
    double below = 0;
    for (const auto& [key, rows] : groups) {
      const auto share = static_cast<double>(rows.size()) / static_cast<double>(column.size());
      for (const std::size_t row : rows) units[row][d] = below + share / 2;
      below += share;
    }
  }
  return detail::ranked_importance(std::move(names), fanova(units, losses, options));
}

namespace detail {

// The trials that importance is computed from: those with a finite value of the metric. Trials that failed without one
// or reported nothing usable get the worst loss. Trials without any report are left out.
template <class Take>
void judged_trials(const Results& results, const Objective& objective, Take take) {
  for (const TrialResult& trial : results.trials()) {
    const auto best = results.best_report(trial.trial, objective);
    if (best && std::isfinite(best->value))
      take(trial, loss_of(best->value, objective.mode));
    else if (trial.state == TrialState::failed || !trial.metrics.empty())
      take(trial, worst_loss);
  }
}

inline Objective first_objective(const Results& results) {
  const auto& objectives = results.experiment().objectives;
  if (objectives.empty()) fail(Errc::usage, "this experiment has no metric: name one");
  return objectives.front();
}

}  // namespace detail

/// Importance over the results of an experiment in its space. Each trial is represented by its best report of the
/// metric (by default the first objective's). A trial without a finite value that failed or reported gets the worst
/// loss.
inline std::vector<Importance> importance(const Results& results, const SearchSpace& space,
                                          std::optional<Objective> objective = std::nullopt,
                                          const FanovaOptions& options = {}) {
  std::vector<Point> points;
  std::vector<double> losses;
  detail::judged_trials(results, objective ? *objective : detail::first_objective(results),
                        [&](const TrialResult& trial, double loss) {
                          if (trial.point.size() != space.size()) return;  // of an earlier space
                          points.push_back(trial.point);
                          losses.push_back(loss);
                        });
  return importance(space, points, losses, options);
}

/// As above if the space is not available, as after `Results::read(directory)`.
inline std::vector<Importance> importance(const Results& results, std::optional<Objective> objective = std::nullopt,
                                          const FanovaOptions& options = {}) {
  std::vector<Params> configurations;
  std::vector<double> losses;
  detail::judged_trials(results, objective ? *objective : detail::first_objective(results),
                        [&](const TrialResult& trial, double loss) {
                          configurations.push_back(trial.params);
                          losses.push_back(loss);
                        });
  return importance(configurations, losses, options);
}

/// The volume that the results dominate, bounded by `reference`: a value per objective, in the metric's own sign, that
/// every good trial beats. The larger the volume, the better the front as a whole. It is computed exactly from the
/// trials of pareto_front(); see hypervolume() of losses.
inline double hypervolume(const Results& results, std::span<const double> reference) {
  const auto& objectives = results.experiment().objectives;
  if (reference.size() != objectives.size())
    fail(Errc::usage, "hypervolume: the reference has {} values, but the experiment {} objectives", reference.size(),
         objectives.size());
  std::vector<double> bound;
  for (std::size_t k = 0; k < objectives.size(); ++k)
    bound.push_back(detail::loss_of(reference[k], objectives[k].mode));
  std::vector<std::vector<double>> losses;
  const auto all = detail::front_losses(results);
  for (const std::size_t i : detail::front_places(all)) losses.push_back(*all[i]);
  return hypervolume(losses, bound);
}

/// The winner of a race (schedule/racing.hpp): among the trials that ran on the most instances, the one with the best
/// last report, which is the mean over its instances. nullopt if there is none. Results::best(), in contrast, considers
/// all reports, including means over a few easy instances.
inline std::optional<TrialId> race_winner(const Results& results) {
  const Objective objective = detail::first_objective(results);
  std::optional<TrialId> winner;
  int steps = 0;
  double least = std::numeric_limits<double>::infinity();
  for (const TrialResult& trial : results.trials()) {
    const double* value = find_metric(trial.metrics, objective.metric);
    if (trial.state == TrialState::failed || value == nullptr || std::isnan(*value) || trial.steps < steps) continue;
    const double loss = detail::loss_of(*value, objective.mode);
    if (winner && trial.steps == steps && !(loss < least)) continue;
    winner = trial.trial;
    steps = trial.steps;
    least = loss;
  }
  return winner;
}

/// The best value of the first objective after each trial, in the order of creation, in the metric's own sign; NaN
/// until there is one. Trials that break a constraint on a metric do not count.
inline std::vector<double> best_so_far(const Results& results) {
  const Objective objective = detail::first_objective(results);
  std::vector<double> losses;
  for (const TrialResult& trial : results.trials()) {
    const auto best = results.best_report(trial.trial, objective);
    losses.push_back(best && results.experiment().admits(trial) ? detail::loss_of(best->value, objective.mode)
                                                                : std::numeric_limits<double>::infinity());
  }
  std::vector<double> curve = best_so_far(std::span<const double>(losses));
  for (double& value : curve) {
    if (std::isinf(value) && value > 0)
      value = std::numeric_limits<double>::quiet_NaN();
    else if (objective.mode == Mode::maximize)
      value = -value;
  }
  return curve;
}

}  // namespace hypertune::inline v0
