// A pause in a polling loop.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace hypertune::inline v0::k8s {

/// Returns early if stop is requested.
inline void wait_a_while(const std::stop_token& stop, Seconds seconds) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, std::chrono::duration<double>(seconds), [] { return false; });
}

}  // namespace hypertune::inline v0::k8s
