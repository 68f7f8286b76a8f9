// ObservedExecutor: an executor whose events a test sees first. disturbed(): some of its workers are lost, as often however
// fast the machine is.
#pragma once

#include <hypertune/execute/executor.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0::test {

/// Calls `before` with each event, on the thread that delivers it, before it passes it on.
template <class E>
class ObservedExecutor {
 public:
  ObservedExecutor(E executor, std::function<void(const Event&)> before)
      : executor_(std::move(executor)), before_(std::move(before)) {}

  std::vector<Host> hosts() const { return executor_.hosts(); }
  Seconds now() const { return executor_.now(); }
  void start(ExecutorStart start) {
    start.sink = [before = before_, sink = std::move(start.sink)](Event event) {
      before(event);
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
  std::function<void(const Event&)> before_;
};

/// Calls `disturb` before each report whose number, of all that the executor has delivered, is a multiple of `period`.
template <class E>
ObservedExecutor<E> disturbed(E executor, int period, std::function<void(int)> disturb) {
  return {std::move(executor),
          [period, disturb = std::move(disturb), reports = std::make_shared<std::atomic<int>>(0)](const Event& event) {
            if (!std::holds_alternative<Reported>(event)) return;
            if (const int number = ++*reports; number % period == 0) disturb(number / period);
          }};
}

}  // namespace hypertune::inline v0::test
