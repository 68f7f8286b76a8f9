// warm_start(): what earlier experiments found, told to a searcher before it begins.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/error.hpp>
#include <hypertune/record/results.hpp>
#include <hypertune/search/searcher.hpp>

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hypertune {

/// See warm_start().
struct WarmStart {
  AnySearcher inner;
  std::vector<std::filesystem::path> experiments;
  std::string taken_{};  ///< what was told, in words

  void prepare(const SearchSpace& space, const SearchGoal& goal) {
    inner.prepare(space, goal);
    TrialId number = -1;  // not those of this experiment's own trials
    taken_.clear();
    for (const auto& directory : experiments) tell(Results::read(directory), space, goal, number);
    if (goal.note && !taken_.empty()) goal.note("warm start with " + taken_);
  }
  Suggestion suggest(const Ask& ask) { return inner.suggest(ask); }
  void observe(const Observation& o) { inner.observe(o); }
  bool multi_objective() const { return inner.multi_objective(); }
  bool covers_grid() const { return inner.covers_grid(); }
  bool finite() const { return inner.finite(); }
  bool cheap() const { return inner.cheap(); }
  /// "auto, warm start with 24 trials of runs/a", once prepared.
  std::string name() const { return inner.name() + ", warm start" + (taken_.empty() ? "" : " with " + taken_); }

 private:
  void tell(const Results& results, const SearchSpace& space, const SearchGoal& goal, TrialId& number) {
    const auto& objectives = results.experiment().objectives;
    if (objectives.size() != goal.objectives)
      fail(Errc::usage, "warm start from '{}': it has {} objectives, but this experiment {}",
           results.directory().string(), objectives.size(), goal.objectives);
    std::size_t fitting = 0, ended = 0;
    std::string mismatch;
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
        point = space.point(trial.params);
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
    if (ended > 0 && fitting == 0)
      fail(Errc::usage, "warm start from '{}': none of its {} trials fits this space ({})",
           results.directory().string(), ended, mismatch);
  }
};

/// `inner`, which first learns what the experiments in these folders found, as if it had run them: their trials are no
/// part of this experiment and its results. The objectives must be as many and mean the same; each trial counts with
/// its last report. Trials that do not fit the space (a parameter lies outside, or is new) are left out; when none
/// fits, or a folder holds no experiment, it is an Error. The folders are read again at each start of this experiment:
/// keep them.
inline WarmStart warm_start(AnySearcher inner, std::vector<std::filesystem::path> experiments) {
  return {.inner = std::move(inner), .experiments = std::move(experiments)};
}

}  // namespace hypertune
