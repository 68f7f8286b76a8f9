// The order of a communicator's operations: blocking and started ones run in the order in which they were requested.
#pragma once

#include <hypertune/detail/signal_block.hpp>
#include <hypertune/train/detail/polling.hpp>

#include <condition_variable>
#include <cstddef>
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
  static constexpr std::size_t max_under_way = 32;
  using Work = std::function<void()>;
  /// Tells whether something is done, without waiting. May throw; it is not called again then.
  using IsDone = std::function<bool()>;
  /// Performs an operation, or begins it. Returns null if it is done.
  using Begin = std::function<IsDone()>;
  using Handler = std::function<void(std::exception_ptr)>;

  OperationOrder() = default;
  OperationOrder(const OperationOrder&) = delete;
  OperationOrder& operator=(const OperationOrder&) = delete;
  /// close() must be called first.
  ~OperationOrder() = default;

  /// Runs `work` on this thread after all earlier operations are done.
  void run(const Work& work) {
    const Turn turn(*state_);
    work();
  }

  /// Runs `begin` on the thread of this order after all earlier operations have begun; the next may begin before this
  /// one is done. `handler` is called once on that thread, when this and all earlier operations are done. It must not
  /// throw.
  void start(Begin begin, Handler handler) {
    State& state = *state_;
    const std::lock_guard guard(state.mutex);
    if (!thread_.joinable()) {  // first, as it may fail: then nothing was started
      const SignalBlock for_the_thread;
      thread_ = std::thread([kept = state_] { serve(*kept); });
    }
    state.queue.push_back({state.next++, std::move(begin), std::move(handler)});
    state.changed.notify_all();
  }

  /// A function that tells whether an operation is not done. May be called from any thread, also after the destruction
  /// of this object.
  std::function<bool()> busy_function() const {
    return [weak = std::weak_ptr<State>(state_)] {
      const auto state = weak.lock();
      if (!state) return false;
      const std::lock_guard guard(state->mutex);
      return state->now != state->next || state->under_way > 0;
    };
  }

  /// Ends operations that were started and are not done with `why`. `interrupt` must end the running ones. Nothing that
  /// was passed to start() runs after this.
  void close(const std::exception_ptr& why, const Work& interrupt) {
    bool pending = false;
    {
      const std::lock_guard guard(state_->mutex);
      if (!thread_.joinable()) return;
      state_->closed = why;
      pending = state_->working || state_->under_way != 0;
      state_->changed.notify_all();
    }
    if (pending) interrupt();
    // The last copy of the communicator may have been in a handler. Then this is that thread: it has its own reference
    // to the state, passes the error to the other handlers, and ends.
    if (thread_.get_id() == std::this_thread::get_id())
      thread_.detach();
    else
      thread_.join();
  }

 private:
  struct Started {
    std::uint64_t turn;
    Begin begin;
    Handler handler;
  };
  struct Begun {
    IsDone is_done;  ///< null: done, or ended with `error`
    std::exception_ptr error;
    Handler handler;
  };
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Started> queue;
    std::uint64_t next = 0, now = 0;  ///< the next turn to be given out, and the current one
    bool working = false;             ///< a started operation is beginning
    std::size_t under_way = 0;        ///< number of operations that have begun and are not done
    std::exception_ptr closed;

    bool has_next() const { return closed ? !queue.empty() : !queue.empty() && queue.front().turn == now; }
  };

  class Turn {
   public:
    explicit Turn(State& state) : state_(state) {
      std::unique_lock lock(state.mutex);
      const auto mine = state.next++;
      state.changed.wait(lock, [&] { return state.now == mine && state.under_way == 0; });
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
    std::deque<Begun> under_way;  // used by this thread only; the other threads see their number
    std::unique_lock lock(state.mutex);
    Pauses pauses;
    for (;;) {
      if (!under_way.empty() && end_first(state, lock, under_way)) {
        pauses = {};
      } else if (state.has_next() && under_way.size() < max_under_way) {
        begin_next(state, lock, under_way);
      } else if (!under_way.empty()) {
        pauses.pause(lock, state.changed);
      } else if (state.closed) {
        return;
      } else {
        state.changed.wait(lock, [&] { return state.closed || state.has_next(); });
        pauses = {};
      }
    }
  }

  static void begin_next(State& state, std::unique_lock<std::mutex>& lock, std::deque<Begun>& under_way) {
    Started started = std::move(state.queue.front());
    state.queue.pop_front();
    std::exception_ptr error = state.closed;
    IsDone is_done;
    if (!error) {
      state.working = true;
      lock.unlock();
      try {
        is_done = started.begin();
      } catch (...) { error = std::current_exception(); }
      lock.lock();
      state.working = false;
      ++state.now;
    }
    // An error is reported after the earlier operations, too: handlers are called in order.
    ++state.under_way;
    under_way.push_back({std::move(is_done), std::move(error), std::move(started.handler)});
    lock.unlock();
    started = {};  // it may hold the communicator, so it is not destroyed under the lock
    lock.lock();
  }

  static bool end_first(State& state, std::unique_lock<std::mutex>& lock, std::deque<Begun>& under_way) {
    Begun& first = under_way.front();
    bool is_done = true;
    if (first.is_done) {
      lock.unlock();
      try {
        is_done = first.is_done();
      } catch (...) { first.error = std::current_exception(); }
      lock.lock();
    }
    if (!is_done && !first.error) return false;
    Begun done = std::move(under_way.front());
    under_way.pop_front();
    --state.under_way;
    state.changed.notify_all();
    lock.unlock();
    done.is_done = nullptr;
    done.handler(std::move(done.error));  // moved on, so that only one thread releases it
    done = {};                            // as above
    lock.lock();
    return true;
  }

  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::thread thread_;
};

}  // namespace hypertune::inline v0::detail
