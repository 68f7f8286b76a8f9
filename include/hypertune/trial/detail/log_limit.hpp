// How much of a trial's log is kept.
#pragma once

#include <hypertune/error.hpp>

#include <cstdint>

namespace hypertune::inline v0 {

/// Bytes of a trial's log that are kept by default, and the smallest limit that can be set.
inline constexpr std::uint64_t default_log_limit = std::uint64_t{16} << 20U, least_log_limit = 4096;

/// Error of kind `usage` for an invalid limit.
inline void require_log_limit(std::uint64_t bytes) {
  if (bytes > 0 && bytes < least_log_limit)
    fail(Errc::usage, "the log limit is {} bytes: it must be 0 (keep all) or {} and more", bytes, least_log_limit);
}

}  // namespace hypertune::inline v0
