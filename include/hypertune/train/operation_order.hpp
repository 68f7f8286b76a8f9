// The order of a communicator's operations: those that block and those that were started take turns as they came.
#pragma once

#include <hypertune/detail/signal_block.hpp>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace hypertune::inline v0::detail {

class OperationOrder {
 public:
  using Work = std::function<void()>;
  using Handler = std::function<void(std::exception_ptr)>;

  OperationOrder() = default;
  OperationOrder(const OperationOrder&) = delete;
  OperationOrder& operator=(const OperationOrder&) = delete;
  /// close() comes first.
  ~OperationOrder() = default;

  /// On this thread, after all that came before.
  void run(const Work& work) {
    const Turn turn(*state_);
    work();
  }

  /// On the thread of this order, after all that came before. `handler` is called there, too, once, and may not throw.
  void start(Work work, Handler handler) {
    State& state = *state_;
    const std::lock_guard guard(state.mutex);
    state.queue.push_back({state.next++, std::move(work), std::move(handler)});
    if (!thread_.joinable()) {
      const SignalBlock for_the_thread;
      thread_ = std::thread([kept = state_] { serve(*kept); });
    }
    state.changed.notify_all();
  }

  /// What was started and is not done ends with `why`: `interrupt` is to end what is under way. Nothing that was given
  /// to start() runs after this.
  void close(const std::exception_ptr& why, const Work& interrupt) {
    bool pending = false;
    {
      const std::lock_guard guard(state_->mutex);
      if (!thread_.joinable()) return;
      state_->closed = why;
      pending = state_->working;
      state_->changed.notify_all();
    }
    if (pending) interrupt();
    // The last copy of the communicator may have been in a handler: then this is that thread, which has its own hold of
    // the state, gives the other handlers their error, and ends.
    if (thread_.get_id() == std::this_thread::get_id())
      thread_.detach();
    else
      thread_.join();
  }

 private:
  struct Started {
    std::uint64_t turn;
    Work work;
    Handler handler;
  };
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Started> queue;
    std::uint64_t next = 0, now = 0;  ///< the next turn to be given, and the one that it is
    bool working = false;             ///< something started is under way
    std::exception_ptr closed;
  };

  class Turn {
   public:
    explicit Turn(State& state) : state_(state) {
      std::unique_lock lock(state.mutex);
      const auto mine = state.next++;
      state.changed.wait(lock, [&] { return state.now == mine; });
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() {
      const std::lock_guard guard(state_.mutex);
      ++state_.now;
      state_.changed.notify_all();
    }

   private:
    State& state_;
  };

  static void serve(State& state) {
    std::unique_lock lock(state.mutex);
    for (;;) {
      state.changed.wait(
          lock, [&] { return state.closed || (!state.queue.empty() && state.queue.front().turn == state.now); });
      if (state.queue.empty()) return;
      Started started = std::move(state.queue.front());
      state.queue.pop_front();
      std::exception_ptr error = state.closed;
      if (!error) {
        state.working = true;
        lock.unlock();
        try {
          started.work();
        } catch (...) { error = std::current_exception(); }
        lock.lock();
        state.working = false;
        ++state.now;
        state.changed.notify_all();
      }
      lock.unlock();
      started.handler(std::move(error));
      started = {};  // what it holds may be the communicator: not under the lock
      lock.lock();
    }
  }

  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::thread thread_;
};

}  // namespace hypertune::inline v0::detail
