// The time between two questions to a provider.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

namespace hypertune::cluster::detail {

// A provider is asked again after a while that grows: nothing tells when a machine has changed.
class Pause {
 public:
  explicit Pause(double first = 0.05, double most = 2) : next_(first), most_(most) {}
  void wait(const std::function<bool()>& cancelled) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(next_);
    while (std::chrono::steady_clock::now() < until && !(cancelled && cancelled()))
      std::this_thread::sleep_for(std::chrono::milliseconds(std::min(50, static_cast<int>(next_ * 1000) + 1)));
    next_ = std::min(next_ * 1.5, most_);
  }

 private:
  double next_, most_;
};

}  // namespace hypertune::cluster::detail
