// SobolSequence: evenly distributed points, accessible by index.
#pragma once

#include <boost/random/sobol.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hypertune::inline v0::detail {

/// The Sobol sequence in base 2 with the direction numbers of Joe and Kuo (2008), by index: 32 bits per coordinate.
class SobolSequence {
 public:
  static constexpr std::size_t max_dimensions = BOOST_RANDOM_SOBOL_MAX_DIMENSION;
  static constexpr std::uint64_t length = std::uint64_t{1} << 32U;

  SobolSequence() = default;

  /// With scrambling, the digits of each dimension are permuted at random (Owen 1995), determined by `seed`.
  SobolSequence(std::size_t dimensions, bool scramble, std::uint64_t seed);

  /// Coordinate d of point `index`, in (0, 1).
  double at(std::uint64_t index, std::size_t d) const;

 private:
  static constexpr std::size_t bits = 32;

  static std::uint32_t reversed(std::uint32_t x);
  /// A hash in which each bit depends only on the bits below it. Applied to reversed bits this is a nested uniform
  /// scrambling (Laine and Karras 2011; constants by N. Vegdahl).
  static std::uint32_t permuted(std::uint32_t x, std::uint32_t seed);

  std::size_t dimensions_ = 0;
  std::vector<std::uint32_t> directions_;  // by bit, then dimension
  std::vector<std::uint32_t> seeds_;       // by dimension; empty: not scrambled
};

}  // namespace hypertune::inline v0::detail
