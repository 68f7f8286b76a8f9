// CmaEs: definitions.
#pragma once

#include <hypertune/search/cma_es.hpp>
#include <hypertune/search/detail/cma_state.hpp>

namespace hypertune::inline v0 {

void CmaEs::prepare(const SearchSpace& space, const SearchContext& goal) {
  state_ = detail::Indirect(detail::CmaState(space, goal, {population_size, sigma0, restart_strategy, shape}));
}

Suggestion CmaEs::suggest(const Ask& ask) { return state_->suggest(ask); }

void CmaEs::observe(const Observation& o) {
  switch (o.kind) {
    case Observation::Kind::started: return state_->started(o.trial, o.point);
    case Observation::Kind::report: return state_->reported(o);
    case Observation::Kind::ended: return state_->ended(o);
  }
}

}  // namespace hypertune::inline v0
