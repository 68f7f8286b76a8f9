// Pbt: definitions.
#pragma once

#include <hypertune/schedule/pbt.hpp>

#include <algorithm>
#include <cmath>

namespace hypertune::inline v0 {

void Pbt::prepare(const SearchSpace& space, std::uint64_t seed) {
  space_ = space;
  seed_ = seed;
  dimensions_ = detail::mutable_dimensions(space, mutate, "pbt");
}

Decision Pbt::on_report(const Progress& progress) {
  const bool pauses = state_.report(progress.trial, progress.steps, detail::ranked_loss(progress.loss()),
                                    perturbation_interval, static_cast<std::size_t>(window));
  return detail::Population::decide(progress, pauses, max_steps);
}

Choice Pbt::choose_next(const Pool& pool) const {
  return state_.choose(pool, population_size, synchronous, [&](TrialId trial, const detail::PopulationMember& member) {
    if (member.steps < burn_in_period) return Choice::resume(trial);
    Rng rng = derived_rng(seed_, {static_cast<std::uint64_t>(trial), 3, member.pauses});
    const auto donor =
        exploit == Exploit::truncation ? state_.truncation(trial, quantile_fraction, rng) : by_test(trial, rng);
    if (!donor) return Choice::resume(trial);
    const auto& given = *state_.find(*donor, member.mark);
    Point point = given.point;
    if (space_) point = detail::explored(*space_, point, dimensions_, resample_probability, perturbation_factor, rng);
    return Choice::exploit(trial, *donor, std::move(point), given.steps);
  });
}

std::optional<TrialId> Pbt::by_test(TrialId trial, Rng& rng) const {
  const int mark = state_[trial].mark;
  if (!state_.held(mark, state_.donors_of(1))) return std::nullopt;
  std::vector<TrialId> others;
  for (const auto& entry : state_.ranking(trial))
    if (entry.trial != trial && std::isfinite(entry.loss)) others.push_back(entry.trial);
  const auto* own = state_.find(trial, mark);
  if (others.empty() || own == nullptr) return std::nullopt;
  std::sort(others.begin(), others.end());
  const auto at = static_cast<std::size_t>(uniform01(rng) * static_cast<double>(others.size()));
  const TrialId donor = others[std::min(at, others.size() - 1)];
  if (!std::isfinite(own->loss)) return donor;
  const auto& given = *state_.find(donor, mark);
  if (!(given.loss < own->loss)) return std::nullopt;
  return detail::welch_less(given.recent, own->recent) < 0.05 ? std::optional(donor) : std::nullopt;
}

}  // namespace hypertune::inline v0
