// warm_start(): what earlier experiments found, told to a searcher before it begins.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/linkage.hpp>
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

namespace hypertune::inline v0 {

/// See warm_start().
struct WarmStart {
  AnySearcher inner;
  std::vector<std::filesystem::path> experiments;
  std::string taken_{};  ///< what was told, in words

  void prepare(const SearchSpace& space, const SearchContext& goal);
  Suggestion suggest(const Ask& ask) { return inner.suggest(ask); }
  void observe(const Observation& o) { inner.observe(o); }
  bool multi_objective() const { return inner.multi_objective(); }
  bool covers_grid() const { return inner.covers_grid(); }
  bool finite() const { return inner.finite(); }
  bool cheap() const { return inner.cheap(); }
  /// "auto, warm start with 24 trials of runs/a", once prepared.
  std::string name() const { return inner.name() + ", warm start" + (taken_.empty() ? "" : " with " + taken_); }

 private:
  struct Told {
    std::size_t fitting = 0, ended = 0;  // trials
  };
  Told tell(const Results& results, const SearchSpace& space, const SearchContext& goal, TrialId& number);
};

/// `inner`, which first learns what the experiments in these folders found, as if it had run them: their trials are no
/// part of this experiment and its results. The objectives must be as many and mean the same; each trial counts with
/// its last report. Trials that do not fit the space (a parameter lies outside, or is new) are left out; when none of
/// any folder fits, or a folder holds no experiment, it is an Error. A parameter that the space lacks and that was the
/// same in all trials of a folder does not count. The folders are read again at each start of this experiment: keep
/// them.
inline WarmStart warm_start(AnySearcher inner, std::vector<std::filesystem::path> experiments) {
  return {.inner = std::move(inner), .experiments = std::move(experiments)};
}

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/search/impl/warm_start.hpp>
#endif
