// Sobol: points that fill the space more evenly than random ones.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/search/searcher.hpp>

#include <cstdint>

namespace hypertune::inline v0 {

namespace detail {
struct SobolState;
}

/// A Sobol sequence mapped through the priors of the space, scrambled so that each seed has its own sequence with the
/// same evenness: of the first 2^k points, each of 2^k equally likely slices of any one dimension contains one. Best
/// used with a power of two as the number of samples. Trial k gets the k-th point that meets the space's constraints,
/// independent of earlier events. Dimensions beyond 3667 are drawn at random. Never exhausted.
struct Sobol {
  static constexpr const char* type = "sobol";

  bool scramble = true;  ///< false: every seed has the same sequence

  static void describe(auto& self, auto&& option) {
    option("scramble", self.scramble, "each seed has a sequence of its own");
  }

  detail::Indirect<detail::SobolState> state_{};

  void prepare(const SearchSpace& space, const SearchContext& goal);
  Suggestion suggest(const Ask& ask);

  void observe(const Observation&) {}
  static constexpr bool cheap = true;
  static constexpr bool multi_objective = true;  // reads no losses

 private:
  static constexpr std::uint64_t max_misses = 10'000;

  Point own_point(std::uint64_t index) const;
  Point point(std::uint64_t index, Rng& rng) const;
};

}  // namespace hypertune::inline v0
