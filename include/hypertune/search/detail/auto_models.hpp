// AutoModels: the searches of Auto by models, and which of them a trial comes from.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/search/gaussian_process.hpp>
#include <hypertune/search/searcher.hpp>
#include <hypertune/search/tpe.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace hypertune::inline v0::detail {

/// A Gaussian process, TPE beside it, and further searches for other minima. What AutoState calls is weak, so that a
/// program without <hypertune/src/models.hpp> links.
class AutoModels {
 public:
  /// Whether the program has the definitions of models.
  static bool defined() { return &AutoModels::prepared != nullptr; }

  [[gnu::weak]] static Indirect<AutoModels> prepared(const SearchSpace& space, const SearchContext& goal);
  /// For problems that are too large for a model of all results.
  [[gnu::weak]] static AnySearcher cma_es();

  /// From a model, or from `tpe`, which has observed the same.
  [[gnu::weak]] Suggestion suggest(const Ask& ask, Tpe& tpe);
  /// `asked`: the trial that has started is one of suggest().
  [[gnu::weak]] void observe(const Observation& o, bool asked);
  [[gnu::weak]] bool quick(const Tpe& tpe) const;
  /// How many searches for other minima have begun.
  std::size_t others_begun() const { return others_begun_; }

 private:
  enum class Turn : std::uint8_t { gp, tpe, found, other };
  /// Which searcher the next trial comes from. `found`: the first one or TPE, once there is a minimum.
  Turn turn() const;
  GaussianProcess next_other() const;
  void begin_other();
  /// Whether the search for other minima has reached a known one, or has finished with a worse one.
  bool done() const;
  bool known(const std::vector<double>& features) const;
  bool near(const std::vector<double>& a, const std::vector<double>& b) const;

  /// Whether most trials made less than half of the steps of the longest one. The newest trials do not count, as they
  /// may still be running.
  bool cut_short() const;

  std::optional<SearchSpace> space_{};
  SearchContext goal_{};
  GaussianProcess gp_{};
  std::optional<GaussianProcess> other_{};     // searches for other minima
  std::set<TrialId> others_{};                 // its running trials
  std::vector<std::vector<double>> minima_{};  // the minima found by searches so far
  std::size_t others_begun_ = 0;
  std::size_t started_ = 0, parallelism_ = 1;
  std::map<TrialId, int> steps_{};  // steps that each trial has reported
};

}  // namespace hypertune::inline v0::detail
