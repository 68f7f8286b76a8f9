// FailedConnections: tells of connections that an error of their server has ended.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/say.hpp>

#include <chrono>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::detail {

inline std::string text_of_error(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) { return e.what(); } catch (...) {
    return "unknown error";
  }
}

/// Writes to the standard error that, and why, connections have failed: the first one at once, and then one line a minute
/// at most, so that no client can fill a log. Thread-safe.
class FailedConnections {
 public:
  /// `which`: what their peers connect to, as in "the page".
  explicit FailedConnections(std::string which) : which_(std::move(which)) {}

  void note(std::string_view why) noexcept {
    try {
      const std::lock_guard guard(mutex_);
      ++count_;
      const auto now = std::chrono::steady_clock::now();
      if (told_ && now - *told_ < std::chrono::minutes(1)) return;
      told_ = now;
      const auto count = std::exchange(count_, 0);
      say(detail::format("hypertune: {} to {} ended by an error here ({}); the others go on",
                         count == 1 ? "a connection" : detail::format("{} connections", count), which_, why));
    } catch (...) {  // NOLINT(bugprone-empty-catch): not even memory for the message
    }
  }
  void note(const std::exception_ptr& error) noexcept {
    try {
      note(text_of_error(error));
    } catch (...) {  // NOLINT(bugprone-empty-catch)
    }
  }

 private:
  const std::string which_;
  std::mutex mutex_;
  int count_ = 0;  // since the last line
  std::optional<std::chrono::steady_clock::time_point> told_;
};

}  // namespace hypertune::inline v0::detail
