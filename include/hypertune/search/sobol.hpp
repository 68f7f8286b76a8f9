// Sobol: points that fill the space more evenly than chance does.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/search/searcher.hpp>

#include <boost/random/sobol.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

/// The Sobol sequence in base 2 with the direction numbers of Joe and Kuo (2008), by index: 32 bits a coordinate.
class SobolSequence {
 public:
  static constexpr std::size_t max_dimensions = BOOST_RANDOM_SOBOL_MAX_DIMENSION;
  static constexpr std::uint64_t length = std::uint64_t{1} << 32U;

  SobolSequence() = default;

  /// With scrambling, a random permutation of the digits (Owen 1995) of each dimension, drawn from `seed`.
  SobolSequence(std::size_t dimensions, bool scramble, std::uint64_t seed);

  /// Coordinate d of point `index`, in (0, 1).
  double at(std::uint64_t index, std::size_t d) const;

 private:
  static constexpr std::size_t bits = 32;

  static std::uint32_t reversed(std::uint32_t x);
  /// A hash in which each bit depends on the ones below it alone: on reversed bits this is a nested uniform scrambling
  /// (Laine and Karras 2011; constants by N. Vegdahl).
  static std::uint32_t permuted(std::uint32_t x, std::uint32_t seed);

  std::size_t dimensions_ = 0;
  std::vector<std::uint32_t> directions_;  // by bit, then dimension
  std::vector<std::uint32_t> seeds_;       // by dimension; empty: not scrambled
};

struct SobolState {
  std::optional<SearchSpace> space;
  SobolSequence sequence;
  std::uint64_t seed = 0;
  std::vector<std::size_t> dimensions;  // those of the space that take a coordinate of the sequence
  std::vector<std::uint64_t> feasible;  // with constraints: indices of the points that meet them, as far as looked
  std::uint64_t looked = 0;
  bool constrained = false;
};

}  // namespace detail

/// A Sobol sequence mapped through the priors of the space, scrambled so that each seed has a sequence of its own with
/// the same evenness: among the first 2^k points each of 2^k equally likely slices of any one dimension has one. Best
/// used with a power of two as the number of samples. Trial k gets the k-th point that meets the space's constraints,
/// whatever has happened before. Dimensions beyond 3667 are drawn at random. Never exhausted.
struct Sobol {
  static constexpr const char* type = "sobol";

  bool scramble = true;

  static void describe(auto& self, auto&& option) {
    option("scramble", self.scramble, "each seed has a sequence of its own");
  }

  detail::SobolState state_{};

  void prepare(const SearchSpace& space, const SearchContext& goal);
  Suggestion suggest(const Ask& ask);

  void observe(const Observation&) {}
  static constexpr bool cheap = true;
  static constexpr bool multi_objective = true;  // it reads no loss at all

 private:
  static constexpr std::uint64_t max_misses = 10'000;

  Point own_point(std::uint64_t index) const {
    Rng rng = derived_rng(state_.seed, {index, 0x736f626f6cU});
    return point(index, rng);
  }
  Point point(std::uint64_t index, Rng& rng) const;
};

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/search/impl/sobol.hpp>
#endif
