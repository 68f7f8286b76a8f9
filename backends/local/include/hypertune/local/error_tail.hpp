// ErrorTail: what a command has written to its standard error last, for the text of its failure.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

namespace hypertune::inline v0::local::detail {

/// Keeps the last three lines, or, after a Python traceback, the first three of its exception: the frames, and the
/// exceptions that led to this one, are in the log, and would fill the text before it comes to the reason.
class ErrorTail {
 public:
  void add(std::string_view line) {
    constexpr std::size_t most = 3, max_size = 500;
    if (const auto inner = without_frame(line);
        inner.starts_with("Traceback (most recent call last)") || inner.starts_with("Exception Group Traceback")) {
      lines_.clear();
      traceback_ = true;
      frames_ = true;
      return;
    }
    if (traceback_) {
      line = without_frame(line);
      frames_ = frames_ && (line.empty() || line.front() == ' ');
      if (frames_ || lines_.size() == most || line.empty() || line.front() == '-') return;
    }
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
  /// A line of an exception group without the lines drawn before it: "  | ValueError: a", "  +---- 1 ----".
  static std::string_view without_frame(std::string_view line) {
    const auto drawn = line.find_first_not_of(' ');
    if (drawn == std::string_view::npos || drawn < 2 || (line[drawn] != '|' && line[drawn] != '+')) return line;
    line.remove_prefix(line.find_first_of("|+", drawn) + 1);
    if (line.starts_with(' ')) line.remove_prefix(1);
    return line;
  }

  std::deque<std::string> lines_;
  bool traceback_ = false;  // the last exception is that of a traceback
  bool frames_ = false;     // … and has not come yet
};

}  // namespace hypertune::inline v0::local::detail
