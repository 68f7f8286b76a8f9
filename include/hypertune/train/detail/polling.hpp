// Waiting for conditions that can only be polled, such as CUDA's events and NCCL's state.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace hypertune::inline v0::detail {

using SteadyTime = std::chrono::steady_clock::time_point;

/// Longer times, which might overflow, become about a year.
inline std::chrono::steady_clock::duration steady_duration(double seconds) {
  const double bounded = seconds > 3e7 || seconds != seconds ? 3e7 : seconds < 0 ? 0 : seconds;
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(bounded));
}
inline SteadyTime steady_after(double seconds) { return std::chrono::steady_clock::now() + steady_duration(seconds); }
inline double seconds_until(SteadyTime time) {
  return std::max(0.0, std::chrono::duration<double>(time - std::chrono::steady_clock::now()).count());
}

/// The pauses between two polls. A small collective takes some tens of microseconds, so at first the thread only
/// yields. Then the pauses grow up to a millisecond, so that a long wait costs almost nothing.
class Pauses {
 public:
  static constexpr int yields = 200;

  void pause() {
    if (offered()) return;
    std::this_thread::sleep_for(next());
  }
  /// The same, with a lock that is released meanwhile. `wake` ends a pause early.
  void pause(std::unique_lock<std::mutex>& lock, std::condition_variable& wake) {
    if (count_ < yields) {
      lock.unlock();
      offered();
      lock.lock();
    } else {
      wake.wait_for(lock, next());
    }
  }

 private:
  bool offered() {
    if (count_ >= yields) return false;
    ++count_;
    std::this_thread::yield();
    return true;
  }
  std::chrono::microseconds next() {
    const auto now = pause_;
    pause_ = std::min(pause_ * 2, std::chrono::microseconds(1000));
    return now;
  }
  int count_ = 0;
  std::chrono::microseconds pause_{20};
};

}  // namespace hypertune::inline v0::detail
