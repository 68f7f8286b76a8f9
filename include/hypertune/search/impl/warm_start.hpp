// warm_start(): definitions.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/error.hpp>
#include <hypertune/record/results.hpp>
#include <hypertune/search/warm_start.hpp>

#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

// The parameters that `space` lacks but that had the same value in all trials, so that they can be ignored.
std::set<std::string, std::less<>> constants_beside(const SearchSpace& space, const Results& results) {
  std::optional<Params> first;
  std::set<std::string, std::less<>> lacking;
  for (const TrialResult& trial : results.trials()) {
    if (!is_final(trial.state)) continue;
    if (!first) {
      first = trial.params;
      for (const auto& [name, value] : *first) lacking.insert(name);
      for (std::size_t d = 0; d < space.size(); ++d) lacking.erase(space.name(d));
    }
    std::erase_if(lacking, [&](const std::string& name) {
      const Value* value = trial.params.find(name);
      return value == nullptr || *value != *first->find(name);
    });
    if (lacking.empty()) break;
  }
  return lacking;
}

}  // namespace detail

WarmStart warm_start(AnySearcher inner, std::vector<std::filesystem::path> experiments) {
  return {.inner = std::move(inner), .experiments = std::move(experiments)};
}

std::string WarmStart::name() const {
  return inner.name() + ", warm start" + (taken_.empty() ? "" : " with " + taken_);
}

void WarmStart::prepare(const SearchSpace& space, const SearchContext& goal) {
  inner.prepare(space, goal);
  TrialId number = -1;  // negative, unlike the numbers of this experiment's own trials
  taken_.clear();
  std::size_t fitting = 0, ended = 0;
  for (const auto& directory : experiments) {
    const Told told = tell(Results::read(directory), space, goal, number);
    fitting += told.fitting;
    ended += told.ended;
  }
  if (ended > 0 && fitting == 0)
    fail(Errc::usage, "warm start: none of its {} trials fits this space: {}", ended, taken_);
  if (goal.note && !taken_.empty()) goal.note("warm start with " + taken_);
}

WarmStart::Told WarmStart::tell(const Results& results, const SearchSpace& space, const SearchContext& goal,
                                TrialId& number) {
  const auto& objectives = results.experiment().objectives;
  if (objectives.size() != goal.objectives)
    fail(Errc::usage, "warm start from '{}': it has {} objectives, but this experiment {}",
         results.directory().string(), objectives.size(), goal.objectives);
  std::size_t fitting = 0, ended = 0;
  std::string mismatch;
  const auto constants = detail::constants_beside(space, results);
  for (const TrialResult& trial : results.trials()) {
    if (!is_final(trial.state)) continue;
    std::vector<double> losses;
    for (const auto& objective : objectives) {
      const double* value = find_metric(trial.metrics, objective.metric);
      const bool sound = value != nullptr && std::isfinite(*value) && trial.state != TrialState::failed;
      losses.push_back(!sound ? worst_loss : objective.mode == Mode::minimize ? *value : -*value);
    }
    ++ended;
    Point point;
    try {
      Params params;
      for (const auto& [name, value] : trial.params)
        if (!constants.contains(name)) params.add(name, value);
      point = space.configuration(params);
    } catch (const Error& e) {
      mismatch = e.what();
      continue;
    }
    ++fitting;
    inner.observe({.kind = Observation::Kind::started, .trial = number, .point = point});
    const auto say = [&](Observation::Kind kind, TrialState state) {
      inner.observe(
          {.kind = kind, .trial = number, .point = point, .steps = trial.steps, .losses = losses, .state = state});
    };
    if (trial.steps > 0) say(Observation::Kind::report, TrialState::running);
    say(Observation::Kind::ended, trial.state);
    --number;
  }
  taken_ += detail::format("{}{} trial{} of {}", taken_.empty() ? "" : ", ", fitting, fitting == 1 ? "" : "s",
                           results.directory().string());
  if (fitting < ended)
    taken_ += detail::format(" ({} do{} not fit this space: {})", ended - fitting, ended - fitting == 1 ? "es" : "",
                             mismatch);
  return {fitting, ended};
}

}  // namespace hypertune::inline v0
