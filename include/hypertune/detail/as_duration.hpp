// Seconds as a duration of std::chrono.
#pragma once

#include <algorithm>
#include <chrono>

namespace hypertune::inline v0::detail {

/// Below 0 is 0. At most 1e9 s, 31 years: a steady_clock's time that is so far away does not overflow.
inline std::chrono::steady_clock::duration as_duration(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(std::clamp(seconds, 0.0, 1e9)));
}

}  // namespace hypertune::inline v0::detail
