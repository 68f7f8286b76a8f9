// Training: a trial written as a coroutine.
#pragma once

#include <hypertune/trial/report.hpp>

#include <concepts>
#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace hypertune::inline v0 {

/// The return type of a trial that is a coroutine. It reports by co_yield and ends by returning. The runner stops a
/// trial early by destroying the frame, so that destructors free what it holds, and pauses it by not resuming it.
class Training {
 public:
  struct promise_type {
    std::optional<Report> current;
    std::exception_ptr error;

    Training get_return_object() { return Training(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(Report r) {
      current = std::move(r);
      return {};
    }
    /// Exists for its error message: the value is not a report.
    template <class T>
      requires(!std::convertible_to<const T&, Report>)
    std::suspend_always yield_value(const T&) {
      static_assert(std::convertible_to<const T&, Report>,
                    "hypertune: co_yield takes a report: write co_yield ht::report(\"loss\", value)");
      return {};
    }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { error = std::current_exception(); }
    void await_transform() = delete;  // a trial reports; it does not await
  };

  explicit Training(std::coroutine_handle<promise_type> frame) : frame_(frame) {}
  Training(Training&& other) noexcept : frame_(std::exchange(other.frame_, {})) {}
  Training& operator=(Training&& other) noexcept {
    std::swap(frame_, other.frame_);
    return *this;
  }
  ~Training() {
    if (frame_) frame_.destroy();
  }

  /// Runs to the next report; nullopt when the coroutine has returned. Rethrows what the trial throws.
  std::optional<Report> next() {
    auto& promise = frame_.promise();
    if (frame_.done()) return std::nullopt;
    promise.current.reset();
    frame_.resume();
    if (promise.error) std::rethrow_exception(std::exchange(promise.error, {}));
    return std::exchange(promise.current, std::nullopt);
  }

 private:
  std::coroutine_handle<promise_type> frame_;
};

}  // namespace hypertune::inline v0
