// PollInterval: the waiting time between two provider calls.
#pragma once

#include <hypertune/detail/sleep_for.hpp>

#include <algorithm>
#include <stop_token>

namespace hypertune::inline v0::cluster::detail {

// Providers do not report when a machine has changed, so they are polled; the interval grows up to a maximum.
class PollInterval {
 public:
  explicit PollInterval(double first = 0.05, double most = 2) : next_(first), most_(most) {}
  void wait(const std::stop_token& stop) {
    hypertune::detail::sleep_for(stop, next_);
    next_ = std::min(next_ * 1.5, most_);
  }

 private:
  double next_, most_;
};

}  // namespace hypertune::inline v0::cluster::detail
