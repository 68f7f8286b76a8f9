// PollInterval: the waiting time between two provider calls.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace hypertune::inline v0::cluster::detail {

// Providers do not report when a machine has changed, so they are polled; the interval grows up to a maximum.
class PollInterval {
 public:
  explicit PollInterval(double first = 0.05, double most = 2) : next_(first), most_(most) {}
  void wait(const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait_for(lock, stop, std::chrono::duration<double>(next_), [] { return false; });
    next_ = std::min(next_ * 1.5, most_);
  }

 private:
  double next_, most_;
};

}  // namespace hypertune::inline v0::cluster::detail
