// NSGA-II and NSGA-III: definitions.
#pragma once

#include <hypertune/search/detail/nsga_state.hpp>
#include <hypertune/search/nsga.hpp>

namespace hypertune::inline v0 {

void Nsga2::prepare(const SearchSpace& space, const SearchContext& goal) {
  state_ = detail::Indirect(detail::NsgaState(
      space, goal, {population_size, crossover_probability, mutation_probability, crossover_eta, mutation_eta, false}));
}

Suggestion Nsga2::suggest(const Ask& ask) { return state_->suggest(ask); }

void Nsga2::observe(const Observation& o) { state_->observe(o); }

void Nsga3::prepare(const SearchSpace& space, const SearchContext& goal) {
  state_ = detail::Indirect(detail::NsgaState(
      space, goal, {population_size, crossover_probability, mutation_probability, crossover_eta, mutation_eta, true}));
}

Suggestion Nsga3::suggest(const Ask& ask) { return state_->suggest(ask); }

void Nsga3::observe(const Observation& o) { state_->observe(o); }

}  // namespace hypertune::inline v0
