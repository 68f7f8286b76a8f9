// Random: independent draws from the space.
#pragma once

#include <hypertune/search/searcher.hpp>

#include <optional>
#include <string>

namespace hypertune::inline v0 {

/// Draws every configuration independently of all others: uniformly over the space, or from the user's priors for the
/// optimum if there are any. Never exhausted.
struct Random {
  static constexpr const char* type = "random";

  std::optional<SearchSpace> space_{};

  void prepare(const SearchSpace& space, const SearchContext&) { space_ = space; }
  Suggestion suggest(const Ask& ask) {
    return space_->has_prior() ? space_->sample_prior(ask.rng) : space_->sample(ask.rng);
  }
  void observe(const Observation&) {}
  std::string name() const { return "random"; }
  static constexpr bool cheap = true;
  static constexpr bool multi_objective = true;  // reads no losses
};

}  // namespace hypertune::inline v0
