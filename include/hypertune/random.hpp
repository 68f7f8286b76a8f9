// Random numbers: one engine, and the rule that makes every draw reproducible after a restart.
#pragma once

#include <boost/container_hash/hash.hpp>
#include <boost/random/mersenne_twister.hpp>
#include <boost/random/uniform_01.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace hypertune {

/// The engine of all draws. Boost's distributions are used with it, as the standard's differ between standard
/// libraries.
using Rng = boost::random::mt19937_64;

/// A generator for one purpose, derived from the experiment's seed and the purpose's own numbers (a trial, a step, a
/// stream). Nothing in hypertune keeps a generator across events: after a restart the same event gets the same numbers
/// without replaying the draws before it.
inline Rng derived_rng(std::uint64_t seed, std::initializer_list<std::uint64_t> purpose) {
  std::size_t mixed = 0;
  boost::hash_combine(mixed, seed);
  for (const auto number : purpose) boost::hash_combine(mixed, number);
  return Rng(mixed);
}

/// One draw from [0, 1).
inline double uniform01(Rng& rng) { return boost::random::uniform_01<double>()(rng); }

}  // namespace hypertune
