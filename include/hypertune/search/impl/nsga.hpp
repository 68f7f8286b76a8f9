// NSGA-II and NSGA-III: definitions.
#pragma once

#include <hypertune/search/detail/nsga_state.hpp>
#include <hypertune/search/nsga.hpp>

namespace hypertune::inline v0 {

HYPERTUNE_INLINE void Nsga2::prepare(const SearchSpace& space, const SearchContext& goal) {
  state_ = detail::Indirect(detail::NsgaState(
      space, goal, {population_size, crossover_probability, mutation_probability, crossover_eta, mutation_eta, false}));
}

HYPERTUNE_INLINE Suggestion Nsga2::suggest(const Ask& ask) { return state_->suggest(ask); }

HYPERTUNE_INLINE void Nsga2::observe(const Observation& o) { state_->observe(o); }

HYPERTUNE_INLINE void Nsga3::prepare(const SearchSpace& space, const SearchContext& goal) {
  state_ = detail::Indirect(detail::NsgaState(
      space, goal, {population_size, crossover_probability, mutation_probability, crossover_eta, mutation_eta, true}));
}

HYPERTUNE_INLINE Suggestion Nsga3::suggest(const Ask& ask) { return state_->suggest(ask); }

HYPERTUNE_INLINE void Nsga3::observe(const Observation& o) { state_->observe(o); }

}  // namespace hypertune::inline v0
