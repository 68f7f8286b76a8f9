// A pause in a polling loop.
#pragma once

#include <hypertune/detail/as_duration.hpp>

#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace hypertune::inline v0::detail {

/// Returns early if stop is requested.
inline void sleep_for(const std::stop_token& stop, double seconds) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, as_duration(seconds), [] { return false; });
}

}  // namespace hypertune::inline v0::detail
