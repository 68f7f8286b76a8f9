// Pbt: definitions.
#pragma once

#include <hypertune/schedule/detail/explore.hpp>
#include <hypertune/schedule/detail/population.hpp>
#include <hypertune/schedule/detail/welch.hpp>
#include <hypertune/schedule/pbt.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

namespace hypertune::inline v0::detail {

struct PbtState {
  Population population;
  std::optional<SearchSpace> space;
  std::vector<std::size_t> dimensions;
  std::uint64_t seed = 0;

  std::optional<TrialId> by_test(TrialId trial, Rng& rng) const;
};

std::optional<TrialId> PbtState::by_test(TrialId trial, Rng& rng) const {
  const int mark = population[trial].mark;
  if (!population.held(mark, population.donors_of(1))) return std::nullopt;
  std::vector<TrialId> others;
  for (const auto& entry : population.ranking(trial))
    if (entry.trial != trial && std::isfinite(entry.loss)) others.push_back(entry.trial);
  const auto* own = population.find(trial, mark);
  if (others.empty() || own == nullptr) return std::nullopt;
  std::sort(others.begin(), others.end());
  const auto at = static_cast<std::size_t>(uniform01(rng) * static_cast<double>(others.size()));
  const TrialId donor = others[std::min(at, others.size() - 1)];
  if (!std::isfinite(own->loss)) return donor;
  const auto& given = *population.find(donor, mark);
  if (!(given.loss < own->loss)) return std::nullopt;
  return welch_less(given.recent, own->recent) < 0.05 ? std::optional(donor) : std::nullopt;
}

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

void Pbt::prepare(const SearchSpace& space, std::uint64_t seed) {
  auto& state = state_.made();
  state.space = space;
  state.seed = seed;
  state.dimensions = detail::mutable_dimensions(space, mutate, "pbt");
}

void Pbt::on_create(TrialId trial, const Point& point) { state_.made().population.create(trial, point); }

void Pbt::on_pause(TrialId trial) { state_.made().population.pause(trial); }

void Pbt::on_exploit(TrialId trial, TrialId donor, const Point& point, int steps) {
  state_.made().population.exploit(trial, donor, point, steps, perturbation_interval);
}

void Pbt::on_resume(TrialId trial) { state_.made().population.resume(trial); }

void Pbt::on_end(TrialId trial, TrialState) { state_.made().population.end(trial); }

bool Pbt::may_give(TrialId trial, int steps) const {
  return state_.or_default().population.may_give(trial, steps, exploit == Exploit::truncation ? quantile_fraction : 1,
                                                 perturbation_interval);
}

Decision Pbt::on_report(const Progress& progress) {
  auto& state = state_.made();
  const bool pauses = state.population.report(progress.trial, progress.steps, detail::ranked_loss(progress.loss()),
                                              perturbation_interval, static_cast<std::size_t>(window));
  return detail::Population::decide(progress, pauses, max_steps);
}

Choice Pbt::choose_next(const Pool& pool) const {
  const auto& state = state_.or_default();
  return state.population.choose(
      pool, population_size, synchronous, [&](TrialId trial, const detail::PopulationMember& member) {
        if (member.steps < burn_in_period) return Choice::resume(trial);
        Rng rng = derived_rng(state.seed, {static_cast<std::uint64_t>(trial), 3, member.pauses});
        const auto donor = exploit == Exploit::truncation ? state.population.truncation(trial, quantile_fraction, rng)
                                                          : state.by_test(trial, rng);
        if (!donor) return Choice::resume(trial);
        const auto& given = *state.population.find(*donor, member.mark);
        Point point = given.point;
        if (state.space)
          point =
              detail::explored(*state.space, point, state.dimensions, resample_probability, perturbation_factor, rng);
        return Choice::exploit(trial, *donor, std::move(point), given.steps);
      });
}

}  // namespace hypertune::inline v0
