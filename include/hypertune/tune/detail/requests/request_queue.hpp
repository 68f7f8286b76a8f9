// RequestQueue: requests from other threads that the thread of a run carries out between its waits.
#pragma once

#include <hypertune/trial/trial.hpp>
#include <hypertune/tune/detail/requests/control.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace hypertune::inline v0::detail {

/// Requests and their answers. ask(), wake() and close() may be called from any thread; serve() and wait() must be
/// called by one thread, the one that serves.
class RequestQueue {
 public:
  /// Waits for the answer that serve() gives. Refuses the request if the queue is closed, or if serve() has not begun
  /// with it after 10 s. `wake_server` must make the thread that serves call serve().
  template <class WakeServer>
  ControlAnswer ask(const ControlRequest& request, const WakeServer& wake_server) {
    Pending pending{&request};
    std::unique_lock guard(mutex_);
    if (closed_) return ending();
    pending_.push_back(&pending);
    guard.unlock();
    wake_server();
    guard.lock();
    const auto answered = [&] { return pending.answer.has_value(); };
    // The server may be busy with a trial. A request to leave must not have to wait behind this one.
    if (!changed_.wait_for(guard, std::chrono::seconds(10), answered) && std::erase(pending_, &pending) > 0)
      return {false, "nothing was done: the driver is busy with a step of a trial; ask again when it has reported"};
    changed_.wait(guard, answered);
    return std::move(*pending.answer);
  }

  /// Answers all requests that wait, by `answer(request)`; after close(), by a refusal.
  template <class Answer>
  void serve(const Answer& answer) {
    for (;;) {
      std::unique_lock guard(mutex_);
      woken_ = false;
      if (pending_.empty()) return;
      Pending* const next = pending_.front();
      pending_.pop_front();
      const bool late = closed_;
      guard.unlock();
      auto given = late ? ending() : answer(*next->request);
      guard.lock();
      next->answer = std::move(given);
      changed_.notify_all();
    }
  }

  void close() {
    const std::lock_guard guard(mutex_);
    closed_ = true;
  }

  /// Ends the current wait(), or the next one if serve() is not called before.
  void wake() {
    {
      const std::lock_guard guard(mutex_);
      woken_ = true;
    }
    changed_.notify_all();
  }
  /// Waits for wake(), at most `seconds`.
  void wait(Seconds seconds) {
    std::unique_lock guard(mutex_);
    changed_.wait_for(guard, std::chrono::duration<double>(std::max(0.0, seconds)), [this] { return woken_; });
  }

  /// The refusal of requests that come too late.
  static ControlAnswer ending() { return {false, "the experiment is just ending"}; }

 private:
  struct Pending {
    const ControlRequest* request;
    std::optional<ControlAnswer> answer = {};
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Pending*> pending_;
  bool woken_ = false, closed_ = false;
};

}  // namespace hypertune::inline v0::detail
