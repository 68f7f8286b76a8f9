// Searchers that wrap other searchers: repeat(), limit(), start_with(), mixed_grid().
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/search/grid.hpp>
#include <hypertune/search/grid_combinations.hpp>
#include <hypertune/search/searcher.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// See mixed_grid().
struct MixedGrid {
  AnySearcher inner;

  struct State {
    std::optional<SearchSpace> space{};
    std::optional<GridCombinations> combinations{};
  };
  State state_{};

  void prepare(const SearchSpace& space, const SearchContext& goal) {
    state_ = {.space = space, .combinations = GridCombinations(space)};
    inner.prepare(space, goal);
  }
  Suggestion suggest(const Ask& ask);
  void observe(const Observation& o) { inner.observe(o); }
  bool multi_objective() const { return inner.multi_objective(); }
  bool covers_grid() const { return true; }
  bool finite() const { return inner.finite(); }
  bool cheap() const { return inner.cheap(); }
  bool quick() const { return inner.quick(); }
  std::string name() const { return inner.name(); }

 private:
  static constexpr std::uint64_t max_passed_over = 1000;
};

/// For spaces in which some dimensions are a grid and others are sampled. Trial i gets the i-th of the
/// GridCombinations, over and over, and `searcher` proposes the other dimensions of each trial. n *
/// GridCombinations(space).size() trials try every combination n times. If a combination violates a constraint together
/// with the proposal, the sampled part is drawn from the prior.
inline MixedGrid mixed_grid(AnySearcher searcher) { return {std::move(searcher)}; }

/// Whether the space has a grid dimension, even one with a single value. Its combinations set the number of trials.
inline bool has_grid(const SearchSpace& space) {
  for (std::size_t d = 0; d < space.size(); ++d)
    if (space.domain(d).grid) return true;
  return false;
}

/// The number of trials per sample of Options::samples: one for each combination of the grid dimensions, unless
/// `search` enumerates them itself. Error of kind `space` if no combination is feasible.
std::int64_t trials_per_sample(const SearchSpace& space, const AnySearcher& search);

/// See repeat().
struct Repeat {
  AnySearcher inner;
  int times = 1;

  struct Group {
    Point point{};
    int started = 0, ended = 0;
    int succeeded = 0;  // trials with a result
    bool any_completed = false;
    int steps = 0;
    Seconds elapsed = 0;         // of all repeats together: for the inner searcher they are one trial
    std::vector<double> sums{};  // of the losses of the succeeded ones
    std::vector<double> constraint_sums{};
  };
  struct State {
    std::int64_t groups = 0;        // created so far; a group's number is the trial number that the inner searcher sees
    std::set<std::int64_t> open{};  // groups with repeats that have not started
    std::unordered_map<std::int64_t, Group> groups_under_way{};
    std::unordered_map<TrialId, std::int64_t> group_of{};  // of running trials
  };
  State state_{};

  void prepare(const SearchSpace& space, const SearchContext& goal);
  Suggestion suggest(const Ask& ask) {
    if (!state_.open.empty()) return state_.groups_under_way.at(*state_.open.begin()).point;
    return inner.suggest({.trial = state_.groups, .rng = ask.rng});
  }
  void observe(const Observation& o) {
    if (o.kind == Observation::Kind::started) return start(o);
    if (o.kind == Observation::Kind::ended) end(o);
  }
  bool multi_objective() const { return inner.multi_objective(); }
  bool covers_grid() const { return true; }
  bool finite() const { return inner.finite(); }
  bool cheap() const { return inner.cheap(); }
  bool quick() const { return inner.quick(); }
  std::string name() const { return detail::format("repeat({}, {})", inner.name(), times); }

 private:
  void start(const Observation& o);
  void end(const Observation& o);
};

/// Runs each configuration `times` times, as separate trials, to average out noise between runs. samples counts trials,
/// so that there are samples / times configurations. `searcher` sees all repeats as one trial, with numbers of its own.
/// Its loss is the mean over the repeats that did not fail, once all have ended; a repeat that never ends does not
/// block the search. `searcher` sees no intermediate reports. Configurations from elsewhere (to try first, already
/// known) are repeated as well.
inline Repeat repeat(AnySearcher searcher, int times) { return {std::move(searcher), times}; }

/// See limit().
struct Limit {
  AnySearcher inner;
  int max_concurrent = 1;

  std::unordered_set<TrialId> pending_{};

  void prepare(const SearchSpace& space, const SearchContext& goal);
  Suggestion suggest(const Ask& ask) {
    if (pending_.size() >= static_cast<std::size_t>(max_concurrent)) return Suggestion::wait();
    return inner.suggest(ask);
  }
  void observe(const Observation& o);
  bool multi_objective() const { return inner.multi_objective(); }
  bool covers_grid() const { return inner.covers_grid(); }
  bool finite() const { return inner.finite(); }
  bool cheap() const { return inner.cheap(); }
  bool quick() const { return inner.quick(); }
  std::string name() const { return detail::format("limit({}, {})", inner.name(), max_concurrent); }
};

/// Allows at most `max_concurrent` trials without a result at a time, so that a sequential searcher learns from each
/// result before its next suggestion, whatever the concurrency. A trial that a scheduler has paused counts. With
/// schedulers that pause many trials (promotion, HyperBand) the limit must be larger than the number that they hold.
inline Limit limit(AnySearcher searcher, int max_concurrent) { return {std::move(searcher), max_concurrent}; }

/// See start_with().
struct StartWith {
  AnySearcher inner;
  std::vector<Params> first;

  std::vector<Point> waiting_{};  ///< those that have not been started yet

  void prepare(const SearchSpace& space, const SearchContext& goal);
  Suggestion suggest(const Ask& ask) { return waiting_.empty() ? inner.suggest(ask) : Suggestion(waiting_.front()); }
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
inline StartWith start_with(AnySearcher searcher, std::vector<Params> configurations) {
  return {std::move(searcher), std::move(configurations)};
}

}  // namespace hypertune::inline v0
