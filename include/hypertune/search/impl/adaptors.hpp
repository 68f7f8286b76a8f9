// Searchers that wrap other searchers: definitions.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/search/adaptors.hpp>
#include <hypertune/search/detail/grid_combinations.hpp>
#include <hypertune/search/grid.hpp>

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

namespace hypertune::inline v0::detail {

struct MixedGridState {
  std::optional<SearchSpace> space;
  std::optional<GridCombinations> combinations;
};

struct RepeatState {
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
  std::int64_t groups = 0;        // created so far; a group's number is the trial number that the inner searcher sees
  std::set<std::int64_t> open{};  // groups with repeats that have not started
  std::unordered_map<std::int64_t, Group> groups_under_way{};
  std::unordered_map<TrialId, std::int64_t> group_of{};  // of running trials

  void start(const Observation& o, Repeat& repeat);
  void end(const Observation& o, Repeat& repeat);
};

struct LimitState {
  std::unordered_set<TrialId> pending;
};

void RepeatState::start(const Observation& o, Repeat& repeat) {
  const auto same = std::find_if(open.begin(), open.end(),
                                 [&](std::int64_t g) { return same_point(groups_under_way.at(g).point, o.point); });
  const std::int64_t g = same != open.end() ? *same : groups++;
  Group& group = groups_under_way[g];
  if (group.started == 0) {
    group.point = o.point;
    repeat.inner.observe({.kind = Observation::Kind::started, .trial = g, .point = group.point});
    open.insert(g);
  }
  if (++group.started == repeat.times) open.erase(g);
  group_of[o.trial] = g;
}

void RepeatState::end(const Observation& o, Repeat& repeat) {
  const auto found = group_of.find(o.trial);
  if (found == group_of.end()) return;
  const std::int64_t g = found->second;
  group_of.erase(found);
  Group& group = groups_under_way.at(g);
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
  if (group.ended < repeat.times) return;
  for (double& sum : group.sums) {
    sum /= group.succeeded;
    if (sum != sum) sum = worst_loss;  // NaN, or the sum of both infinities
  }
  for (double& sum : group.constraint_sums) sum /= group.succeeded;
  repeat.inner.observe({.kind = Observation::Kind::ended,
                        .trial = g,
                        .point = group.point,
                        .steps = group.steps,
                        .losses = group.sums,
                        .constraints = group.constraint_sums,
                        .state = group.any_completed   ? TrialState::completed
                                 : group.succeeded > 0 ? TrialState::stopped
                                                       : TrialState::failed,
                        .elapsed = group.elapsed});
  groups_under_way.erase(g);
}

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

void MixedGrid::prepare(const SearchSpace& space, const SearchContext& goal) {
  state_ = detail::Indirect(detail::MixedGridState{.space = space, .combinations = GridCombinations(space)});
  inner.prepare(space, goal);
}

Suggestion MixedGrid::suggest(const Ask& ask) {
  constexpr std::uint64_t max_passed_over = 1000;
  const auto& space = *state_->space;
  const auto& combinations = *state_->combinations;
  Suggestion first = inner.suggest(ask);
  if (space.grid_size() == 1 || first.kind != Suggestion::Kind::point) return first;
  // If there were too many combinations to check, an infeasible one may be left: take the next one instead.
  for (std::uint64_t i = 0; i < std::min(combinations.size(), max_passed_over); ++i) {
    const std::uint64_t c = combinations[(static_cast<std::uint64_t>(ask.trial) + i) % combinations.size()];
    Point point = first.point;
    space.set_grid(point, c);
    if (space.feasible(point)) return point;
    if (auto drawn = GridCombinations::draw(space, c, ask.rng)) return std::move(*drawn);
    if (auto example = GridCombinations::example(space, c)) return std::move(*example);
  }
  fail(Errc::space, "no combination of the grid dimensions was found that meets the constraints: loosen them");
}

MixedGrid mixed_grid(AnySearcher searcher) { return {std::move(searcher)}; }

bool has_grid(const SearchSpace& space) {
  for (std::size_t d = 0; d < space.size(); ++d)
    if (space.domain(d).grid) return true;
  return false;
}

std::int64_t trials_per_sample(const SearchSpace& space, const AnySearcher& search) {
  if (search.covers_grid() || space.grid_size() <= 1) return 1;
  const auto combinations = static_cast<std::int64_t>(GridCombinations(space).size());
  if (combinations == 0) fail(Errc::space, "no combination of the grid dimensions meets the constraints: loosen them");
  return combinations;
}

void Repeat::prepare(const SearchSpace& space, const SearchContext& goal) {
  if (times < 1) fail(Errc::usage, "repeat: each configuration is tried {} times, but must be at least once", times);
  state_ = {};
  if (space.grid_size() > 1 && !inner.covers_grid()) inner = mixed_grid(std::move(inner));
  SearchContext own = goal;
  own.samples = (goal.samples + times - 1) / times;
  own.parallelism = std::max(1, goal.parallelism / times);
  inner.prepare(space, own);
}

Suggestion Repeat::suggest(const Ask& ask) {
  const auto& state = state_.or_default();
  if (!state.open.empty()) return state.groups_under_way.at(*state.open.begin()).point;
  return inner.suggest({.trial = state.groups, .rng = ask.rng});
}

void Repeat::observe(const Observation& o) {
  if (o.kind == Observation::Kind::started) return state_.made().start(o, *this);
  if (o.kind == Observation::Kind::ended) state_.made().end(o, *this);
}

std::string Repeat::name() const { return detail::format("repeat({}, {})", inner.name(), times); }

Repeat repeat(AnySearcher searcher, int times) { return {std::move(searcher), times}; }

void Limit::prepare(const SearchSpace& space, const SearchContext& goal) {
  if (max_concurrent < 1)
    fail(Errc::usage, "limit: {} trials at a time are none at all: at least 1 is needed", max_concurrent);
  state_ = {};
  inner.prepare(space, goal);
}

Suggestion Limit::suggest(const Ask& ask) {
  if (state_.or_default().pending.size() >= static_cast<std::size_t>(max_concurrent)) return Suggestion::wait();
  return inner.suggest(ask);
}

std::string Limit::name() const { return detail::format("limit({}, {})", inner.name(), max_concurrent); }

Limit limit(AnySearcher searcher, int max_concurrent) { return {std::move(searcher), max_concurrent}; }

void Limit::observe(const Observation& o) {
  if (o.kind == Observation::Kind::started) state_.made().pending.insert(o.trial);
  if (o.kind == Observation::Kind::ended) state_.made().pending.erase(o.trial);
  inner.observe(o);
}

void StartWith::prepare(const SearchSpace& space, const SearchContext& goal) {
  waiting_.clear();
  for (const Params& params : first) waiting_.push_back(space.configuration(params));
  inner.prepare(space, goal);
}

Suggestion StartWith::suggest(const Ask& ask) {
  return waiting_.empty() ? inner.suggest(ask) : Suggestion(waiting_.front());
}

StartWith start_with(AnySearcher searcher, std::vector<Params> configurations) {
  return {std::move(searcher), std::move(configurations)};
}

void StartWith::observe(const Observation& o) {
  if (o.kind == Observation::Kind::started) {
    const auto found =
        std::find_if(waiting_.begin(), waiting_.end(), [&](const Point& p) { return detail::same_point(p, o.point); });
    if (found != waiting_.end()) waiting_.erase(found);
  }
  inner.observe(o);
}

}  // namespace hypertune::inline v0
