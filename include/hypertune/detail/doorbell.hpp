// Doorbell: one thread waits, any thread may ring, and no ring is lost.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace hypertune::inline v0::detail {

/// The basis of wait() and notify() of an executor. A ring while nobody waits ends the next wait at once; several rings
/// count as one.
class Doorbell {
 public:
  void ring() {
    {
      const std::lock_guard guard(mutex_);
      rung_ = true;
    }
    heard_.notify_all();
  }

  /// Waits for a ring, at most `seconds` (and at most an hour). Returns whether there was one.
  bool wait_for(double seconds) {
    std::unique_lock guard(mutex_);
    const std::chrono::duration<double> most(std::clamp(seconds, 0.0, 3600.0));
    heard_.wait_for(guard, most, [this] { return rung_; });
    return std::exchange(rung_, false);
  }

 private:
  std::mutex mutex_;
  std::condition_variable heard_;
  bool rung_ = false;
};

}  // namespace hypertune::inline v0::detail
