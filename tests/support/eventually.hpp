// What other processes bring about, waited for.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace hypertune::inline v0::test {

/// Waits for a condition that other processes bring about, at most `seconds`.
inline bool eventually(const std::function<bool()>& condition, double seconds = 20) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace hypertune::inline v0::test
