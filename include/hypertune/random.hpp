// Random numbers: one engine, and the rule that makes every draw reproducible after a restart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace hypertune::inline v0 {

/// The engine of all draws: the numbers of std::mt19937_64 and boost::random::mt19937_64. Neither is used, because they
/// include streams, to be printed. Boost's distributions are used with it, as the standard's differ between standard
/// libraries.
class Rng {
 public:
  using result_type = std::uint64_t;

  explicit Rng(result_type value = 5489) { seed(value); }
  void seed(result_type value);

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }

  result_type operator()() {
    if (next_ == size) refill();
    result_type x = state_[next_++];
    x ^= (x >> 29U) & 0x5555555555555555U;
    x ^= (x << 17U) & 0x71d67fffeda60000U;
    x ^= (x << 37U) & 0xfff7eee000000000U;
    return x ^ (x >> 43U);
  }

 private:
  static constexpr std::size_t size = 312;

  void refill();

  result_type state_[size];  // NOLINT: std::array would be a type for each file to instantiate
  std::size_t next_ = size;
};

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
inline double uniform01(Rng& rng) {
  for (;;)
    if (const double x = static_cast<double>(rng()) * 0x1p-64; x < 1) return x;  // it may be rounded up to 1
}

}  // namespace hypertune::inline v0
