// DEHB and BOHB: definitions.
#pragma once

#include <hypertune/search/detail/dehb_state.hpp>
#include <hypertune/search/multi_fidelity.hpp>
#include <hypertune/search/tpe.hpp>

namespace hypertune::inline v0 {

void Dehb::prepare(const SearchSpace& space, const SearchContext& goal) {
  state_ = detail::Indirect(
      detail::DehbState(space, goal, {max_steps, reduction_factor, mutation_factor, crossover_probability}));
}

Suggestion Dehb::suggest(const Ask& ask) { return state_->suggest(ask); }

void Dehb::observe(const Observation& o) { state_->observe(o); }

SearchAndSchedule bohb(int max_steps, int reduction_factor) {
  return {Tpe{}, HyperBand{.max_steps = max_steps, .reduction_factor = reduction_factor}};
}

SearchAndSchedule dehb(int max_steps, int reduction_factor) {
  return {Dehb{.max_steps = max_steps, .reduction_factor = reduction_factor},
          HyperBand{.max_steps = max_steps, .reduction_factor = reduction_factor}};
}

}  // namespace hypertune::inline v0
