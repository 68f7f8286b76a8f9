// WakeupEvent: one thread waits, any thread may signal, and no signal is lost.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace hypertune::inline v0::detail {

/// The basis of wait() and notify() of an executor. A signal while nobody waits ends the next wait at once; several
/// signals count as one.
class WakeupEvent {
 public:
  void signal() {
    {
      const std::lock_guard guard(mutex_);
      signalled_ = true;
    }
    changed_.notify_all();
  }

  /// Waits for a signal, at most `seconds` (and at most an hour). Returns whether there was one.
  bool wait_for(double seconds) {
    std::unique_lock guard(mutex_);
    const std::chrono::duration<double> most(std::clamp(seconds, 0.0, 3600.0));
    changed_.wait_for(guard, most, [this] { return signalled_; });
    return std::exchange(signalled_, false);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool signalled_ = false;
};

}  // namespace hypertune::inline v0::detail
