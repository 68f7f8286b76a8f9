// ErrorTail: what a command has printed last, for the text of its failure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

namespace hypertune::inline v0::local::detail {

/// Whether a line speaks of an error. An error that is a metric does not count: "error: 0.5".
inline bool tells_of_error(std::string_view line) {
  constexpr std::size_t enough = 4096;
  std::string low(line.substr(0, enough));
  std::transform(low.begin(), low.end(), low.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  for (auto at = low.find("error"); at != std::string::npos; at = low.find("error", at + 1)) {
    const auto next = low.find_first_not_of(" =:s", at + 5);
    if (next == std::string::npos || low[next] < '0' || low[next] > '9') return true;
  }
  for (const char* const word :
       {"fatal",         "exception",    "traceback",    "abort",        "failed",       "failure", "cannot",
        "can't",         "could not",    "couldn't",     "unable",       "invalid",      "illegal", "no such",
        "not found",     "unknown",      "unrecognized", "unrecognised", "unsupported",  "denied",  "refused",
        "out of memory", "out of range", "assert",       "panic",        "segmentation", "usage:",  "missing",
        "must be",       "does not",     "undefined",    "incorrect",    "[err",         "killed"})
    if (low.find(word) != std::string::npos) return true;
  return false;
}

/// Keeps the last three lines, or, after a Python traceback, the first three of its exception: the frames, and the
/// exceptions that led to this one, are in the log, and would fill the text before it comes to the reason.
class ErrorTail {
 public:
  /// `passing`: an update of a progress bar. It is kept only until there is another line.
  void add(std::string_view line, bool passing = false) {
    constexpr std::size_t most = 3, max_size = 500;
    if (begins_traceback(line)) {
      lines_.clear();
      traceback_ = true;
      frames_ = true;
      return;
    }
    if (passing && !traceback_ && !tells_of_error(line)) {
      bar_ = line.substr(0, max_size);
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
  /// Of output in which errors are rare: adds only lines that speak of one, each with the line after it.
  void add_error(std::string_view line, bool passing) {
    const bool error = tells_of_error(line);
    if (traceback_ || begins_traceback(line) || error || (follows_ && !passing)) add(line, passing);
    follows_ = error;
  }
  void clear() { *this = ErrorTail(); }
  /// Whether a line speaks of an error.
  bool tells() const { return traceback_ || std::any_of(lines_.begin(), lines_.end(), tells_of_error); }
  /// "first | second | third"; empty if there are none.
  std::string text() const {
    if (lines_.empty()) return bar_;
    std::string all;
    for (const auto& line : lines_) all += (all.empty() ? "" : " | ") + line;
    return all;
  }

 private:
  /// It may stand behind a progress bar that was not ended.
  static bool begins_traceback(std::string_view line) {
    const auto inner = without_frame(line);
    return inner.starts_with("Traceback (most recent call last)") || inner.starts_with("Exception Group Traceback") ||
           line.ends_with("Traceback (most recent call last):");
  }
  /// A line of an exception group without the lines drawn before it: "  | ValueError: a", "  +---- 1 ----".
  static std::string_view without_frame(std::string_view line) {
    const auto drawn = line.find_first_not_of(' ');
    if (drawn == std::string_view::npos || drawn < 2 || (line[drawn] != '|' && line[drawn] != '+')) return line;
    line.remove_prefix(line.find_first_of("|+", drawn) + 1);
    if (line.starts_with(' ')) line.remove_prefix(1);
    return line;
  }

  std::deque<std::string> lines_;
  std::string bar_;         // the latest update of a progress bar
  bool follows_ = false;    // the line before this one spoke of an error
  bool traceback_ = false;  // the last exception is that of a traceback
  bool frames_ = false;     // … and has not come yet
};

}  // namespace hypertune::inline v0::local::detail
