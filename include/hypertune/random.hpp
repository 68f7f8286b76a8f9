// Random numbers: one engine, and the rule that makes every draw reproducible after a restart.
#pragma once

#include <boost/random/mersenne_twister.hpp>
#include <boost/random/uniform_01.hpp>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <random>

namespace hypertune {

/// The engine of all draws. Boost's distributions are used with it, as the standard's differ between standard
/// libraries.
using Rng = boost::random::mt19937_64;

/// A generator for one purpose, derived from the experiment's seed and the purpose's own numbers (a trial, a step, a
/// stream). Nothing in hypertune keeps a generator across events: after a restart the same event gets the same numbers
/// without replaying the draws before it.
inline Rng derived_rng(std::uint64_t seed, std::initializer_list<std::uint64_t> purpose) {
  std::array<std::uint32_t, 16> words{};
  std::size_t n = 0;
  const auto add = [&](std::uint64_t x) {
    if (n + 2 <= words.size()) {
      words[n++] = static_cast<std::uint32_t>(x);
      words[n++] = static_cast<std::uint32_t>(x >> 32U);
    }
  };
  add(seed);
  for (const auto x : purpose) add(x);
  std::seed_seq sequence(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(n));
  return Rng(sequence);
}

/// One draw from [0, 1).
inline double uniform01(Rng& rng) { return boost::random::uniform_01<double>()(rng); }

}  // namespace hypertune
