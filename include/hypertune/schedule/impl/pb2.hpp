// Pb2: definitions.
#pragma once

#include <hypertune/schedule/detail/explore.hpp>
#include <hypertune/schedule/detail/population.hpp>
#include <hypertune/schedule/detail/time_varying_bandit.hpp>
#include <hypertune/schedule/pb2.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <span>
#include <utility>

namespace hypertune::inline v0::detail {

struct Pb2State {
  struct Seen {
    Point point;
    double time, gain;
  };
  Population population;
  std::deque<Seen> seen;
  std::optional<SearchSpace> space;
  std::vector<std::size_t> dimensions;
  std::uint64_t seed = 0;

  static double time_of(const Pb2& options, int steps) {
    return static_cast<double>(steps) / static_cast<double>(options.perturbation_interval);
  }
  std::vector<double> cube(const Point& point) const;
  /// `base` with the coordinates `x` of the dimensions that may change; nullopt if that violates a constraint.
  std::optional<Point> placed(const Point& base, std::span<const double> x, Rng& rng) const;
  Point explored(const Pb2& options, TrialId trial, const PopulationArrival& donor, Rng& rng) const;
};

std::vector<double> Pb2State::cube(const Point& point) const {
  const auto unit = space->to_unit(point);
  std::vector<double> x;
  for (const std::size_t d : dimensions) x.push_back(is_active(unit[d]) ? unit[d] : 0.5);
  return x;
}

std::optional<Point> Pb2State::placed(const Point& base, std::span<const double> x, Rng& rng) const {
  auto unit = space->to_unit(base);
  for (double& u : unit)
    if (!is_active(u)) u = uniform01(rng);
  for (std::size_t i = 0; i < x.size(); ++i) unit[dimensions[i]] = x[i];
  Point point = space->from_unit(unit, rng);
  return space->feasible(point) ? std::optional(std::move(point)) : std::nullopt;
}

Point Pb2State::explored(const Pb2& options, TrialId trial, const PopulationArrival& donor, Rng& rng) const {
  const Point& base = donor.point;
  if (!space || dimensions.empty()) return base;
  constexpr std::size_t min_seen = 4;
  if (seen.size() < min_seen) return detail::explored(*space, base, dimensions, 1, 1.2, rng);
  std::vector<TimeVaryingBandit::Observation> observations;
  for (const auto& each : seen) observations.push_back({cube(each.point), each.time, each.gain});
  TimeVaryingBandit bandit(std::move(observations));
  if (!bandit.sound()) return detail::explored(*space, base, dimensions, 1, 1.2, rng);
  const double time = time_of(options, donor.steps) + 1;
  for (const auto& [other, member] : population.members())
    if (other != trial && !member.paused) bandit.pending(cube(member.point), time_of(options, member.steps) + 1);
  // First draws from the whole cube, then ever closer around the best draw.
  Point best = base;
  std::vector<double> x(dimensions.size()), centre = cube(base);
  double highest = bandit.bound(centre, time, options.width), radius = 1;
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
      const double bound = bandit.bound(at, time, options.width);
      if (!(bound > highest)) continue;
      highest = bound;
      centre = at;
      best = std::move(*point);
    }
  }
  return best;
}

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

void Pb2::prepare(const SearchSpace& space, std::uint64_t seed) {
  auto& state = state_.made();
  state.space = space;
  state.seed = seed;
  state.dimensions = detail::mutable_dimensions(space, mutate, "pb2");
  std::erase_if(state.dimensions, [&](std::size_t d) { return space.domain(d).kind == DomainKind::categorical; });
}

void Pb2::on_create(TrialId trial, const Point& point) { state_.made().population.create(trial, point); }

void Pb2::on_pause(TrialId trial) { state_.made().population.pause(trial); }

void Pb2::on_exploit(TrialId trial, TrialId donor, const Point& point, int steps) {
  state_.made().population.exploit(trial, donor, point, steps, perturbation_interval);
}

void Pb2::on_resume(TrialId trial) { state_.made().population.resume(trial); }

void Pb2::on_end(TrialId trial, TrialState) { state_.made().population.end(trial); }

bool Pb2::may_give(TrialId trial, int steps) const {
  return state_.or_default().population.may_give(trial, steps, quantile_fraction, perturbation_interval);
}

Decision Pb2::on_report(const Progress& progress) {
  auto& state = state_.made();
  const bool pauses = state.population.report(progress.trial, progress.steps, detail::ranked_loss(progress.loss()),
                                              perturbation_interval, 1);
  if (pauses) {
    const auto& member = state.population[progress.trial];
    const double gain = member.before - member.loss;
    if (std::isfinite(gain)) state.seen.push_back({member.point, detail::Pb2State::time_of(*this, member.steps), gain});
    if (state.seen.size() > static_cast<std::size_t>(history)) state.seen.pop_front();
  }
  return detail::Population::decide(progress, pauses, max_steps);
}

Choice Pb2::choose_next(const Pool& pool) const {
  const auto& state = state_.or_default();
  return state.population.choose(
      pool, population_size, synchronous, [&](TrialId trial, const detail::PopulationMember& member) {
        Rng rng = derived_rng(state.seed, {static_cast<std::uint64_t>(trial), 4, member.pauses});
        const auto donor = state.population.truncation(trial, quantile_fraction, rng);
        if (!donor) return Choice::resume(trial);
        const auto& given = *state.population.find(*donor, member.mark);
        return Choice::exploit(trial, *donor, state.explored(*this, trial, given, rng), given.steps);
      });
}

}  // namespace hypertune::inline v0
