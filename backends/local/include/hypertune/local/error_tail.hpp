// ErrorTail: the last lines that a command has written to its standard error, for the text of its failure.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::local::detail {

/// Keeps the last three lines. Of a Python traceback it keeps the exception, not the frames: they, and the exceptions
/// that led to this one, are in the log, and would fill the text before it comes to the reason.
class ErrorTail {
 public:
  void add(std::string_view line) {
    if (line.starts_with("Traceback (most recent call last)")) {
      lines_.clear();
      in_traceback_ = true;
      return;
    }
    if (in_traceback_ && (line.empty() || line.front() == ' ')) return;
    in_traceback_ = false;
    constexpr std::size_t most = 3, max_size = 500;
    lines_.emplace_back(line.substr(0, max_size));
    if (lines_.size() > most) lines_.pop_front();
  }
  void clear() { *this = ErrorTail(); }
  /// "first | second | third"; empty if there are none.
  std::string text() const {
    std::string all;
    for (const auto& line : lines_) all += (all.empty() ? "" : " | ") + line;
    return all;
  }

 private:
  std::deque<std::string> lines_;
  bool in_traceback_ = false;  // its exception has not come yet
};

}  // namespace hypertune::inline v0::local::detail
