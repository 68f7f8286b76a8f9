// Pb2: definitions.
#pragma once

#include <hypertune/schedule/detail/time_varying_bandit.hpp>
#include <hypertune/schedule/pb2.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace hypertune::inline v0 {

void Pb2::prepare(const SearchSpace& space, std::uint64_t seed) {
  space_ = space;
  seed_ = seed;
  dimensions_ = detail::mutable_dimensions(space, mutate, "pb2");
  std::erase_if(dimensions_, [&](std::size_t d) { return space.domain(d).kind == DomainKind::categorical; });
}

Decision Pb2::on_report(const Progress& progress) {
  const bool pauses =
      state_.report(progress.trial, progress.steps, detail::ranked_loss(progress.loss()), perturbation_interval, 1);
  if (pauses) {
    const auto& member = state_[progress.trial];
    const double gain = member.before - member.loss;
    if (std::isfinite(gain)) seen_.push_back({member.point, time_of(member.steps), gain});
    if (seen_.size() > static_cast<std::size_t>(history)) seen_.pop_front();
  }
  return detail::Population::decide(progress, pauses, max_steps);
}

Choice Pb2::choose_next(const Pool& pool) const {
  return state_.choose(pool, population_size, synchronous, [&](TrialId trial, const detail::PopulationMember& member) {
    Rng rng = derived_rng(seed_, {static_cast<std::uint64_t>(trial), 4, member.pauses});
    const auto donor = state_.truncation(trial, quantile_fraction, rng);
    if (!donor) return Choice::resume(trial);
    const auto& given = *state_.find(*donor, member.mark);
    return Choice::exploit(trial, *donor, explored(trial, given, rng), given.steps);
  });
}

std::vector<double> Pb2::cube(const Point& point) const {
  const auto unit = space_->to_unit(point);
  std::vector<double> x;
  for (const std::size_t d : dimensions_) x.push_back(is_active(unit[d]) ? unit[d] : 0.5);
  return x;
}

std::optional<Point> Pb2::placed(const Point& base, std::span<const double> x, Rng& rng) const {
  auto unit = space_->to_unit(base);
  for (double& u : unit)
    if (!is_active(u)) u = uniform01(rng);
  for (std::size_t i = 0; i < x.size(); ++i) unit[dimensions_[i]] = x[i];
  Point point = space_->from_unit(unit, rng);
  return space_->feasible(point) ? std::optional(std::move(point)) : std::nullopt;
}

Point Pb2::explored(TrialId trial, const detail::PopulationArrival& donor, Rng& rng) const {
  const Point& base = donor.point;
  if (!space_ || dimensions_.empty()) return base;
  constexpr std::size_t min_seen = 4;
  if (seen_.size() < min_seen) return detail::explored(*space_, base, dimensions_, 1, 1.2, rng);
  std::vector<detail::TimeVaryingBandit::Observation> observations;
  for (const auto& seen : seen_) observations.push_back({cube(seen.point), seen.time, seen.gain});
  detail::TimeVaryingBandit bandit(std::move(observations));
  if (!bandit.sound()) return detail::explored(*space_, base, dimensions_, 1, 1.2, rng);
  const double time = time_of(donor.steps) + 1;
  for (const auto& [other, member] : state_.members())
    if (other != trial && !member.paused) bandit.pending(cube(member.point), time_of(member.steps) + 1);
  // First draws from the whole cube, then ever closer around the best draw.
  Point best = base;
  std::vector<double> x(dimensions_.size()), centre = cube(base);
  double highest = bandit.bound(centre, time, width), radius = 1;
  constexpr int rounds = 5, draws = 60;
  for (int round = 0; round < rounds; ++round, radius *= 0.4) {
    const std::vector<double> from = centre;
    for (int i = 0; i < draws; ++i) {
      for (std::size_t d = 0; d < x.size(); ++d) {
        const double u = uniform01(rng);
        x[d] = round == 0 ? u : std::clamp(from[d] + radius * (u - 0.5), 0.0, 1.0);
      }
      auto point = placed(base, x, rng);
      if (!point) continue;
      const auto at = cube(*point);  // the point's own coordinates: a lattice may have moved it
      const double bound = bandit.bound(at, time, width);
      if (!(bound > highest)) continue;
      highest = bound;
      centre = at;
      best = std::move(*point);
    }
  }
  return best;
}

}  // namespace hypertune::inline v0
