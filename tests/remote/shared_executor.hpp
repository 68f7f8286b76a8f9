// SharedExecutor: an executor that a test can still ask when a tuner has it.
#pragma once

#include <hypertune/execute/executor.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::test {

template <class E>
class SharedExecutor {
 public:
  template <class... Args>
  explicit SharedExecutor(Args&&... args) : executor_(std::make_shared<E>(std::forward<Args>(args)...)) {}
  SharedExecutor(const SharedExecutor&) = default;
  SharedExecutor(SharedExecutor&) = default;
  SharedExecutor(SharedExecutor&&) noexcept = default;
  SharedExecutor& operator=(SharedExecutor&&) noexcept = default;

  std::vector<Host> hosts() const { return executor_->hosts(); }
  Seconds now() const { return executor_->now(); }
  void start(ExecutorStart start) { executor_->start(std::move(start)); }
  void perform(Command command) { executor_->perform(std::move(command)); }
  void wait(Seconds deadline) { executor_->wait(deadline); }
  void notify() { executor_->notify(); }
  void shutdown() { executor_->shutdown(); }
  std::string name() const { return executor_->name(); }

  std::shared_ptr<E> get() const { return executor_; }

 private:
  std::shared_ptr<E> executor_;
};

}  // namespace hypertune::inline v0::test
