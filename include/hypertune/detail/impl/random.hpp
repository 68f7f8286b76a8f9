// Random numbers: the engine (Matsumoto and Nishimura, MT19937-64).
#pragma once

#include <hypertune/random.hpp>

namespace hypertune::inline v0 {

void Rng::seed(result_type value) {
  for (std::size_t i = 0; i < size; ++i) {
    state_[i] = value;
    value = 6364136223846793005U * (value ^ (value >> 62U)) + i + 1;
  }
  next_ = size;
}

void Rng::refill() {
  constexpr std::size_t shift = size / 2;
  const auto mixed = [](result_type high, result_type low) {
    const result_type x = (high & 0xffffffff80000000U) | (low & 0x7fffffffU);
    return (x >> 1U) ^ ((x & 1U) * 0xb5026f5aa96619e9U);
  };
  for (std::size_t i = 0; i < shift; ++i) state_[i] = state_[i + shift] ^ mixed(state_[i], state_[i + 1]);
  for (std::size_t i = shift; i < size - 1; ++i) state_[i] = state_[i - shift] ^ mixed(state_[i], state_[i + 1]);
  state_[size - 1] = state_[shift - 1] ^ mixed(state_[size - 1], state_[0]);
  next_ = 0;
}

}  // namespace hypertune::inline v0
