// Sobol: definitions.
#pragma once

#include <hypertune/search/detail/sobol_sequence.hpp>
#include <hypertune/search/sobol.hpp>
#include <hypertune/space/detail/model.hpp>

#include <cstddef>
#include <optional>
#include <vector>

namespace hypertune::inline v0::detail {

struct SobolState {
  std::optional<SearchSpace> space;
  SobolSequence sequence;
  std::uint64_t seed = 0;
  std::vector<std::size_t> dimensions;  // the dimensions that use a coordinate of the sequence
  std::vector<std::uint64_t> feasible;  // with constraints: indices of the feasible points among the first `looked`
  std::uint64_t looked = 0;
  bool constrained = false;
};

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

void Sobol::prepare(const SearchSpace& space, const SearchContext& goal) {
  state_ = detail::Indirect(detail::SobolState());
  state_->space = space;
  state_->seed = goal.seed;
  for (std::size_t d = 0; d < space.size(); ++d) {
    const auto kind = space.domain(d).kind;
    if (kind == DomainKind::constant || kind == DomainKind::derived) continue;
    if (state_->dimensions.size() < detail::SobolSequence::max_dimensions) state_->dimensions.push_back(d);
  }
  state_->sequence = detail::SobolSequence(state_->dimensions.size(), scramble, goal.seed);
  state_->constrained = !space.model().constraints.empty();
}

Suggestion Sobol::suggest(const Ask& ask) {
  const auto trial = static_cast<std::uint64_t>(ask.trial);
  if (!state_->constrained) return point(trial, ask.rng);
  while (state_->feasible.size() <= trial) {
    const std::uint64_t begin = state_->looked;
    for (bool found = false; !found;) {
      // Hardly any point is feasible: let the space sample, or report that.
      if (state_->looked - begin >= max_misses) return state_->space->sample(ask.rng);
      found = state_->space->feasible(own_point(state_->looked));
      if (found) state_->feasible.push_back(state_->looked);
      ++state_->looked;
    }
  }
  return own_point(state_->feasible[trial]);
}

Point Sobol::own_point(std::uint64_t index) const {
  Rng rng = derived_rng(state_->seed, {index, 0x736f626f6cU});
  return point(index, rng);
}

Point Sobol::point(std::uint64_t index, Rng& rng) const {
  std::vector<double> unit(state_->space->size(), 0.5);
  if (state_->dimensions.size() == detail::SobolSequence::max_dimensions)
    for (double& u : unit) u = uniform01(rng);
  // Without scrambling the first point is the lower corner, which is a bad start, so skip it.
  const std::uint64_t at = (index + (scramble ? 0 : 1)) % detail::SobolSequence::length;
  for (std::size_t i = 0; i < state_->dimensions.size(); ++i) unit[state_->dimensions[i]] = state_->sequence.at(at, i);
  return state_->space->from_unit(unit, rng);
}

}  // namespace hypertune::inline v0
