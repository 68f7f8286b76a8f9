// Searchers that wrap other searchers: repeat(), limit(), start_with(), mixed_grid().
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/search/searcher.hpp>
#include <hypertune/space/search_space.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {
struct LimitState;
struct MixedGridState;
struct RepeatState;
}  // namespace detail

/// See mixed_grid().
struct MixedGrid {
  AnySearcher inner;

  detail::Indirect<detail::MixedGridState> state_{};

  void prepare(const SearchSpace& space, const SearchContext& goal);
  Suggestion suggest(const Ask& ask);
  void observe(const Observation& o) { inner.observe(o); }
  bool multi_objective() const { return inner.multi_objective(); }
  bool covers_grid() const { return true; }
  bool finite() const { return inner.finite(); }
  bool cheap() const { return inner.cheap(); }
  bool quick() const { return inner.quick(); }
  std::string name() const { return inner.name(); }
};

/// For spaces in which some dimensions are a grid and others are sampled. Trial i gets the i-th of the
/// GridCombinations, over and over, and `searcher` proposes the other dimensions of each trial. n *
/// GridCombinations(space).size() trials try every combination n times. If a combination violates a constraint together
/// with the proposal, the sampled part is drawn from the prior.
MixedGrid mixed_grid(AnySearcher searcher);

/// Whether the space has a grid dimension, even one with a single value. Its combinations set the number of trials.
bool has_grid(const SearchSpace& space);

/// The number of trials per sample of Options::samples: one for each combination of the grid dimensions, unless
/// `search` enumerates them itself. Error of kind `space` if no combination is feasible.
std::int64_t trials_per_sample(const SearchSpace& space, const AnySearcher& search);

/// See repeat().
struct Repeat {
  AnySearcher inner;
  int times = 1;

  detail::Indirect<detail::RepeatState> state_{};

  void prepare(const SearchSpace& space, const SearchContext& goal);
  Suggestion suggest(const Ask& ask);
  void observe(const Observation& o);
  bool multi_objective() const { return inner.multi_objective(); }
  bool covers_grid() const { return true; }
  bool finite() const { return inner.finite(); }
  bool cheap() const { return inner.cheap(); }
  bool quick() const { return inner.quick(); }
  std::string name() const;
};

/// Runs each configuration `times` times, as separate trials, to average out noise between runs. samples counts trials,
/// so that there are samples / times configurations. `searcher` sees all repeats as one trial, with numbers of its own.
/// Its loss is the mean over the repeats that did not fail, once all have ended; a repeat that never ends does not
/// block the search. `searcher` sees no intermediate reports. Configurations from elsewhere (to try first, already
/// known) are repeated as well.
Repeat repeat(AnySearcher searcher, int times);

/// See limit().
struct Limit {
  AnySearcher inner;
  int max_concurrent = 1;

  detail::Indirect<detail::LimitState> state_{};

  void prepare(const SearchSpace& space, const SearchContext& goal);
  Suggestion suggest(const Ask& ask);
  void observe(const Observation& o);
  bool multi_objective() const { return inner.multi_objective(); }
  bool covers_grid() const { return inner.covers_grid(); }
  bool finite() const { return inner.finite(); }
  bool cheap() const { return inner.cheap(); }
  bool quick() const { return inner.quick(); }
  std::string name() const;
};

/// Allows at most `max_concurrent` trials without a result at a time, so that a sequential searcher learns from each
/// result before its next suggestion, whatever the concurrency. A trial that a scheduler has paused counts. With
/// schedulers that pause many trials (promotion, HyperBand) the limit must be larger than the number that they hold.
Limit limit(AnySearcher searcher, int max_concurrent);

/// See start_with().
struct StartWith {
  AnySearcher inner;
  std::vector<Params> first;

  std::vector<Point> waiting_{};  ///< those that have not been started yet

  void prepare(const SearchSpace& space, const SearchContext& goal);
  Suggestion suggest(const Ask& ask);
  void observe(const Observation& o);
  bool multi_objective() const { return inner.multi_objective(); }
  bool covers_grid() const { return inner.covers_grid(); }
  bool finite() const { return inner.finite(); }
  bool cheap() const { return inner.cheap(); }
  bool quick() const { return inner.quick(); }
  std::string name() const { return inner.name(); }
};

/// Suggests these configurations first, in this order, then those of `searcher`, which learns from all results. Error
/// of kind `space` if a value is outside of its domain, or a constraint is violated. The same as Options::start_with, for a searcher that is used
/// alone or inside another adaptor.
StartWith start_with(AnySearcher searcher, std::vector<Params> configurations);

}  // namespace hypertune::inline v0
