// warm_start(): passes results of earlier experiments to a searcher before it begins.
#pragma once

#include <hypertune/fwd.hpp>
#include <hypertune/search/searcher.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

/// See warm_start().
struct WarmStart {
  AnySearcher inner;
  std::vector<std::filesystem::path> experiments;
  std::string taken_{};  ///< what was passed, for name()

  void prepare(const SearchSpace& space, const SearchContext& goal);
  Suggestion suggest(const Ask& ask) { return inner.suggest(ask); }
  void observe(const Observation& o) { inner.observe(o); }
  bool multi_objective() const { return inner.multi_objective(); }
  bool covers_grid() const { return inner.covers_grid(); }
  bool finite() const { return inner.finite(); }
  bool cheap() const { return inner.cheap(); }
  bool quick() const { return inner.quick(); }
  /// "auto, warm start with 24 trials of runs/a", once prepared.
  std::string name() const;

 private:
  struct Told {
    std::size_t fitting = 0, ended = 0;  // trials
  };
  Told tell(const Results& results, const SearchSpace& space, const SearchContext& goal, TrialId& number);
};

/// `inner`, which first learns the results of the experiments in these folders as if it had run them. Their trials do
/// not become part of this experiment and its results. The number and meaning of the objectives must be the same; each
/// trial counts with its last report. Trials that do not fit the space (a parameter is out of bounds or missing, a
/// condition, constraint or formula says otherwise) are left out. It is an Error if no trial of any folder fits, or if a folder holds no experiment. A parameter that the
/// space lacks is ignored if it had the same value in all trials of a folder. The folders are read again at each start
/// of this experiment: keep them.
WarmStart warm_start(AnySearcher inner, std::vector<std::filesystem::path> experiments);

}  // namespace hypertune::inline v0
