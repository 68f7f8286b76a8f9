// SobolSequence: definitions.
#pragma once

#include <hypertune/random.hpp>
#include <hypertune/search/detail/sobol_sequence.hpp>

namespace hypertune::inline v0::detail {

SobolSequence::SobolSequence(std::size_t dimensions, bool scramble, std::uint64_t seed) : dimensions_(dimensions) {
  if (dimensions == 0) return;
  boost::random::sobol_engine<std::uint32_t, 32> engine(dimensions);
  directions_.resize(bits * dimensions);
  // Boost returns the points in the order of the Gray code: point 2^k is the k-th direction xor the (k-1)-th direction.
  for (std::size_t bit = 0; bit < bits; ++bit) {
    engine.seed(static_cast<std::uint32_t>((std::uint64_t{1} << bit) - 1));  // then its first point has number 1
    for (std::size_t d = 0; d < dimensions; ++d) {
      const auto value = static_cast<std::uint32_t>(engine());
      directions_[bit * dimensions + d] = bit == 0 ? value : value ^ directions_[(bit - 1) * dimensions + d];
    }
  }
  if (!scramble) return;
  Rng rng = derived_rng(seed, {0x736f626f6cU});
  seeds_.resize(dimensions);
  for (auto& s : seeds_) s = static_cast<std::uint32_t>(rng() >> 32U);
}

double SobolSequence::at(std::uint64_t index, std::size_t d) const {
  std::uint32_t x = 0;
  for (std::size_t bit = 0; bit < bits && (index >> bit) != 0; ++bit)
    if (((index >> bit) & 1U) != 0) x ^= directions_[bit * dimensions_ + d];
  if (!seeds_.empty()) x = reversed(permuted(reversed(x), seeds_[d]));
  return (static_cast<double>(x) + 0.5) * 0x1p-32;
}

std::uint32_t SobolSequence::reversed(std::uint32_t x) {
  x = ((x & 0x55555555U) << 1U) | ((x >> 1U) & 0x55555555U);
  x = ((x & 0x33333333U) << 2U) | ((x >> 2U) & 0x33333333U);
  x = ((x & 0x0f0f0f0fU) << 4U) | ((x >> 4U) & 0x0f0f0f0fU);
  x = ((x & 0x00ff00ffU) << 8U) | ((x >> 8U) & 0x00ff00ffU);
  return (x << 16U) | (x >> 16U);
}

std::uint32_t SobolSequence::permuted(std::uint32_t x, std::uint32_t seed) {
  x ^= x * 0x3d20adeaU;
  x += seed;
  x *= (seed >> 16U) | 1U;
  x ^= x * 0x05526c56U;
  x ^= x * 0x53a22864U;
  return x;
}

}  // namespace hypertune::inline v0::detail
