// Searchers made of other searchers: repeat(), limit(), start_with(), mixed_grid().
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/search/grid.hpp>
#include <hypertune/search/grid_combinations.hpp>
#include <hypertune/search/searcher.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace hypertune {

/// See mixed_grid().
struct MixedGrid {
  AnySearcher inner;

  struct State {
    std::optional<SearchSpace> space{};
    std::optional<GridCombinations> combinations{};
  };
  State state_{};

  void prepare(const SearchSpace& space, const SearchGoal& goal) {
    state_ = {.space = space, .combinations = GridCombinations(space)};
    inner.prepare(space, goal);
  }
  Suggestion suggest(const Ask& ask) {
    const auto& space = *state_.space;
    const auto& combinations = *state_.combinations;
    Suggestion first = inner.suggest(ask);
    if (space.grid_size() == 1 || first.kind != Suggestion::Kind::point) return first;
    // Where the list was too long to be checked, a combination that cannot be met gives way to the next.
    for (std::uint64_t i = 0; i < std::min(combinations.size(), most_passed_over); ++i) {
      const std::uint64_t c = combinations[(static_cast<std::uint64_t>(ask.trial) + i) % combinations.size()];
      Point point = first.point;
      space.set_grid(point, c);
      if (space.feasible(point)) return point;
      if (auto drawn = GridCombinations::draw(space, c, ask.rng)) return std::move(*drawn);
      if (auto example = GridCombinations::example(space, c)) return std::move(*example);
    }
    fail(Errc::space, "no combination of the grid dimensions was found that meets the constraints: loosen them");
  }
  void observe(const Observation& o) { inner.observe(o); }
  bool multi_objective() const { return inner.multi_objective(); }
  bool covers_grid() const { return true; }
  bool finite() const { return inner.finite(); }
  bool cheap() const { return inner.cheap(); }
  std::string name() const { return inner.name(); }

 private:
  static constexpr std::uint64_t most_passed_over = 1000;
};

/// For spaces in which some dimensions are a grid and others are sampled: trial i has the i-th of the GridCombinations,
/// over and over, and `searcher` proposes the other dimensions, anew for each trial. n * GridCombinations(space).size()
/// trials try every combination n times. Where a combination violates a constraint with what was proposed, the sampled
/// part is drawn from the prior.
inline MixedGrid mixed_grid(AnySearcher searcher) { return {std::move(searcher)}; }

/// How many trials a sample of Options::samples stands for: one for each combination of the grid dimensions, unless
/// `search` goes through them itself. Error of kind `space` if no combination can be met.
inline std::int64_t trials_per_sample(const SearchSpace& space, const AnySearcher& search) {
  if (search.covers_grid() || space.grid_size() <= 1) return 1;
  const auto combinations = static_cast<std::int64_t>(GridCombinations(space).size());
  if (combinations == 0) fail(Errc::space, "no combination of the grid dimensions meets the constraints: loosen them");
  return combinations;
}

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
    Seconds elapsed = 0;         // of all repeats together: an ask stands for that many trials
    std::vector<double> sums{};  // of the losses of those that succeeded
    std::vector<double> constraint_sums{};
  };
  struct State {
    std::int64_t groups = 0;        // made so far; a group's number is the trial number the inner searcher sees
    std::set<std::int64_t> open{};  // groups with repeats still to start
    std::unordered_map<std::int64_t, Group> groups_under_way{};
    std::unordered_map<TrialId, std::int64_t> group_of{};  // of trials under way
  };
  State state_{};

  void prepare(const SearchSpace& space, const SearchGoal& goal) {
    if (times < 1) fail(Errc::usage, "repeat: each configuration is tried {} times, but must be at least once", times);
    state_ = {};
    if (space.grid_size() > 1 && !inner.covers_grid()) inner = mixed_grid(std::move(inner));
    SearchGoal own = goal;
    own.samples = (goal.samples + times - 1) / times;
    own.parallelism = std::max(1, goal.parallelism / times);
    inner.prepare(space, own);
  }
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
  std::string name() const { return detail::format("repeat({}, {})", inner.name(), times); }

 private:
  void start(const Observation& o) {
    const auto same = std::find_if(state_.open.begin(), state_.open.end(), [&](std::int64_t g) {
      return detail::same_point(state_.groups_under_way.at(g).point, o.point);
    });
    const std::int64_t g = same != state_.open.end() ? *same : state_.groups++;
    Group& group = state_.groups_under_way[g];
    if (group.started == 0) {
      group.point = o.point;
      inner.observe({.kind = Observation::Kind::started, .trial = g, .point = group.point});
      state_.open.insert(g);
    }
    if (++group.started == times) state_.open.erase(g);
    state_.group_of[o.trial] = g;
  }
  void end(const Observation& o) {
    const auto found = state_.group_of.find(o.trial);
    if (found == state_.group_of.end()) return;
    const std::int64_t g = found->second;
    state_.group_of.erase(found);
    Group& group = state_.groups_under_way.at(g);
    ++group.ended;
    group.steps = std::max(group.steps, o.steps);
    group.elapsed += o.elapsed;
    if (o.state != TrialState::failed && !o.losses.empty()) {
      ++group.succeeded;
      group.any_completed = group.any_completed || o.state == TrialState::completed;
      group.sums.resize(std::max(group.sums.size(), o.losses.size()), 0.0);
      for (std::size_t i = 0; i < o.losses.size(); ++i) group.sums[i] += o.losses[i];
      group.constraint_sums.resize(std::max(group.constraint_sums.size(), o.constraints.size()), 0.0);
      for (std::size_t i = 0; i < o.constraints.size(); ++i) group.constraint_sums[i] += o.constraints[i];
    }
    if (group.ended < times) return;
    for (double& sum : group.sums) {
      sum /= group.succeeded;
      if (sum != sum) sum = worst_loss;  // NaN, or the sum of both infinities
    }
    for (double& sum : group.constraint_sums) sum /= group.succeeded;
    inner.observe({.kind = Observation::Kind::ended,
                   .trial = g,
                   .point = group.point,
                   .steps = group.steps,
                   .losses = group.sums,
                   .constraints = group.constraint_sums,
                   .state = group.any_completed   ? TrialState::completed
                            : group.succeeded > 0 ? TrialState::stopped
                                                  : TrialState::failed,
                   .elapsed = group.elapsed});
    state_.groups_under_way.erase(g);
  }
};

/// Tries each configuration `times` times, as trials of their own (samples counts trials, so samples / times
/// configurations), against noise between runs. `searcher` sees one trial for them all, numbered by itself, whose loss
/// is the mean over those that did not fail, once all have ended; a repeat that never ends holds up nothing. It sees no
/// intermediate reports. Configurations from elsewhere (to try first, already known) are repeated as well.
inline Repeat repeat(AnySearcher searcher, int times) { return {std::move(searcher), times}; }

/// See limit().
struct Limit {
  AnySearcher inner;
  int max_concurrent = 1;

  std::unordered_set<TrialId> pending_{};

  void prepare(const SearchSpace& space, const SearchGoal& goal) {
    if (max_concurrent < 1)
      fail(Errc::usage, "limit: {} trials at a time are none at all: at least 1 is needed", max_concurrent);
    pending_.clear();
    inner.prepare(space, goal);
  }
  Suggestion suggest(const Ask& ask) {
    if (pending_.size() >= static_cast<std::size_t>(max_concurrent)) return Suggestion::wait();
    return inner.suggest(ask);
  }
  void observe(const Observation& o) {
    if (o.kind == Observation::Kind::started) pending_.insert(o.trial);
    if (o.kind == Observation::Kind::ended) pending_.erase(o.trial);
    inner.observe(o);
  }
  bool multi_objective() const { return inner.multi_objective(); }
  bool covers_grid() const { return inner.covers_grid(); }
  bool finite() const { return inner.finite(); }
  bool cheap() const { return inner.cheap(); }
  std::string name() const { return detail::format("limit({}, {})", inner.name(), max_concurrent); }
};

/// Lets at most `max_concurrent` trials be without a result at a time: a sequential searcher then learns from each
/// before it goes on, whatever the concurrency. A trial that a scheduler has paused counts, so with schedulers that
/// pause many (promotion, HyperBand) the limit must be larger than what they hold.
inline Limit limit(AnySearcher searcher, int max_concurrent) { return {std::move(searcher), max_concurrent}; }

/// See start_with().
struct StartWith {
  AnySearcher inner;
  std::vector<Params> first;

  std::vector<Point> waiting_{};  ///< those that have not been started yet

  void prepare(const SearchSpace& space, const SearchGoal& goal) {
    waiting_.clear();
    for (const Params& params : first) {
      waiting_.push_back(space.point(params));
      if (const auto constraint = space.violated(waiting_.back()))
        fail(Errc::space, "start_with: the configuration {} violates the constraint '{}'", params, *constraint);
    }
    inner.prepare(space, goal);
  }
  Suggestion suggest(const Ask& ask) { return waiting_.empty() ? inner.suggest(ask) : Suggestion(waiting_.front()); }
  void observe(const Observation& o) {
    if (o.kind == Observation::Kind::started) {
      const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                      [&](const Point& p) { return detail::same_point(p, o.point); });
      if (found != waiting_.end()) waiting_.erase(found);
    }
    inner.observe(o);
  }
  bool multi_objective() const { return inner.multi_objective(); }
  bool covers_grid() const { return inner.covers_grid(); }
  bool finite() const { return inner.finite(); }
  bool cheap() const { return inner.cheap(); }
  std::string name() const { return inner.name(); }
};

/// Suggests these configurations first, in this order, then what `searcher` suggests, which learns from them too. An
/// Error of kind `space` names a value outside of its domain. The same as Options::start_with, for a searcher used by
/// itself or inside another adaptor.
inline StartWith start_with(AnySearcher searcher, std::vector<Params> configurations) {
  return {std::move(searcher), std::move(configurations)};
}

}  // namespace hypertune
