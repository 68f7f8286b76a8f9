// DisturbedExecutor: an executor of whose workers some are lost, as often however fast the machine is.
#pragma once

#include <hypertune/execute/executor.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0::test {

/// Calls `disturb` before it passes on each report whose number, of all that it has seen, is a multiple of `period`.
template <class E>
class DisturbedExecutor {
 public:
  DisturbedExecutor(E executor, int period, std::function<void(int)> disturb)
      : executor_(std::move(executor)), period_(period), disturb_(std::move(disturb)) {}

  std::vector<Host> hosts() const { return executor_.hosts(); }
  Seconds now() const { return executor_.now(); }
  void start(ExecutorStart start) {
    start.sink = [this_period = period_, disturb = disturb_, reports = std::make_shared<std::atomic<int>>(0),
                  sink = std::move(start.sink)](Event event) {
      if (std::holds_alternative<Reported>(event))
        if (const int number = ++*reports; number % this_period == 0) disturb(number / this_period);
      sink(std::move(event));
    };
    executor_.start(std::move(start));
  }
  void perform(Command command) { executor_.perform(std::move(command)); }
  void wait(Seconds deadline) { executor_.wait(deadline); }
  void notify() { executor_.notify(); }
  void shutdown() { executor_.shutdown(); }
  static constexpr bool runs_gangs = true;

 private:
  E executor_;
  int period_;
  std::function<void(int)> disturb_;
};

}  // namespace hypertune::inline v0::test
