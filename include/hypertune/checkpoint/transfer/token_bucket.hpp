// TokenBucket: limits the bandwidth that transfers use.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

namespace hypertune::inline v0 {

/// A rate in bytes per second, shared by all transfers that hold it. Thread-safe; the rate may change at any time. A
/// sender first reserves its bytes and then waits until the time that it is given, so that no transfer starves another.
class TokenBucket {
 public:
  using Clock = std::chrono::steady_clock;

  /// 0: no limit.
  explicit TokenBucket(std::uint64_t bytes_per_second = 0) : rate_(bytes_per_second) {}

  void set_rate(std::uint64_t bytes_per_second) {
    const std::lock_guard lock(mutex_);
    rate_ = bytes_per_second;
    free_at_ = {};  // reservations at the old rate no longer count
  }
  std::uint64_t rate() const {
    const std::lock_guard lock(mutex_);
    return rate_;
  }

  /// Reserves `bytes` and returns when they may be sent. Unused time is made up for, up to `burst`.
  Clock::time_point take(std::uint64_t bytes, Clock::time_point now = Clock::now()) {
    const std::lock_guard lock(mutex_);
    if (rate_ == 0) return now;
    constexpr auto burst = std::chrono::milliseconds(50);
    if (free_at_ < now - burst) free_at_ = now - burst;
    free_at_ += std::chrono::nanoseconds(
        static_cast<std::int64_t>(static_cast<double>(bytes) * 1e9 / static_cast<double>(rate_)));
    return free_at_;
  }

  /// How much to send at once so that waits stay short: what a tenth of a second allows, at least 4 KiB; at most
  /// `most`.
  std::uint64_t slice(std::uint64_t most) const {
    const std::uint64_t tenth = rate() / 10;
    if (tenth == 0 || tenth > most) return most;
    return tenth < 4096 ? 4096 : tenth;
  }

 private:
  mutable std::mutex mutex_;
  std::uint64_t rate_;
  Clock::time_point free_at_{};
};

}  // namespace hypertune::inline v0
