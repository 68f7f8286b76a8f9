// ExecutorHandle: the members of an Executor whose work another class does.
#pragma once

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/execute/executor.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

/// What an executor does; see the concept Executor. Its destructor must do what shutdown() does.
class ExecutorState {
 public:
  virtual ~ExecutorState() = default;
  virtual std::vector<Host> hosts() = 0;
  virtual Seconds now() { return run_clock(); }
  virtual void start(ExecutorStart start) = 0;
  virtual void perform(Command command) = 0;
  virtual void wait(Seconds deadline) = 0;
  virtual void notify() = 0;
  virtual void shutdown() = 0;
};

/// The base of executors that leave everything to an ExecutorState, which their headers need not show. Copies share it.
class ExecutorHandle {
 public:
  std::vector<Host> hosts() const { return state_->hosts(); }
  Seconds now() const { return state_->now(); }
  void start(ExecutorStart start) { state_->start(std::move(start)); }
  void perform(Command command) { state_->perform(std::move(command)); }
  void wait(Seconds deadline) { state_->wait(deadline); }
  void notify() { state_->notify(); }
  void shutdown() { state_->shutdown(); }

 protected:
  explicit ExecutorHandle(std::shared_ptr<ExecutorState> state) : state_(std::move(state)) {}
  /// The state as what it was made as.
  template <class State>
  State& state() const {
    return static_cast<State&>(*state_);
  }

 private:
  std::shared_ptr<ExecutorState> state_;
};

}  // namespace hypertune::inline v0::detail
