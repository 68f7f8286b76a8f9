// Searchers that wrap other searchers: definitions.
#pragma once

#include <hypertune/search/adaptors.hpp>

#include <algorithm>

namespace hypertune::inline v0 {

Suggestion MixedGrid::suggest(const Ask& ask) {
  const auto& space = *state_.space;
  const auto& combinations = *state_.combinations;
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

void Repeat::start(const Observation& o) {
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

void Repeat::end(const Observation& o) {
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

void Limit::prepare(const SearchSpace& space, const SearchContext& goal) {
  if (max_concurrent < 1)
    fail(Errc::usage, "limit: {} trials at a time are none at all: at least 1 is needed", max_concurrent);
  pending_.clear();
  inner.prepare(space, goal);
}

void Limit::observe(const Observation& o) {
  if (o.kind == Observation::Kind::started) pending_.insert(o.trial);
  if (o.kind == Observation::Kind::ended) pending_.erase(o.trial);
  inner.observe(o);
}

void StartWith::prepare(const SearchSpace& space, const SearchContext& goal) {
  waiting_.clear();
  for (const Params& params : first) waiting_.push_back(space.configuration(params));
  inner.prepare(space, goal);
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
