// DifferentialEvolution: definitions.
#pragma once

#include <hypertune/search/detail/differential_state.hpp>
#include <hypertune/search/differential_evolution.hpp>

namespace hypertune::inline v0 {

void DifferentialEvolution::prepare(const SearchSpace& space, const SearchContext& goal) {
  state_ = detail::Indirect(
      detail::DifferentialState(space, goal, {population_size, mutation_factor, crossover_probability}));
}

Suggestion DifferentialEvolution::suggest(const Ask& ask) { return state_->suggest(ask); }

void DifferentialEvolution::observe(const Observation& o) { state_->observe(o); }

}  // namespace hypertune::inline v0
