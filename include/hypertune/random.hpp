// Random numbers: one engine, and the rule that makes every draw reproducible after a restart.
#pragma once

#include <boost/random/mersenne_twister.hpp>
#include <boost/random/uniform_01.hpp>

#include <cstdint>
#include <initializer_list>

namespace hypertune::inline v0 {

/// The engine of all draws. Boost's distributions are used with it, as the standard's differ between standard
/// libraries.
using Rng = boost::random::mt19937_64;

namespace detail {

/// Mixes `number` into a running hash. The results must never change: a resumed experiment has to draw the same numbers
/// as before. This is boost::hash_combine of Boost 1.81 on 64 bits (the finaliser is Jon Maiga's of mx3), copied
/// because Boost changes it from release to release.
constexpr std::uint64_t mixed_in(std::uint64_t mixture, std::uint64_t number) {
  std::uint64_t x = mixture + 0x9e3779b9U + number;
  x ^= x >> 32U;
  x *= 0x0e9846af9b1a615dU;
  x ^= x >> 32U;
  x *= 0x0e9846af9b1a615dU;
  x ^= x >> 28U;
  return x;
}

}  // namespace detail

/// A generator for one purpose, derived from the experiment's seed and the purpose's own numbers (a trial, a step, a
/// stream). No generator is kept across events: after a restart the same event gets the same numbers without replaying
/// the draws before it.
inline Rng derived_rng(std::uint64_t seed, std::initializer_list<std::uint64_t> purpose) {
  std::uint64_t mixed = detail::mixed_in(0, seed);
  for (const auto number : purpose) mixed = detail::mixed_in(mixed, number);
  return Rng(mixed);
}

/// One draw from [0, 1).
inline double uniform01(Rng& rng) { return boost::random::uniform_01<double>()(rng); }

}  // namespace hypertune::inline v0
