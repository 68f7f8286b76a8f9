// OutputMark: a line that marks the start of a script's output, because an account's start-up files may print before
// it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hypertune::inline v0::ssh {

/// Skips everything before the script's own output, which may arrive in pieces. The output of start-up files may lack a
/// final newline, so the mark begins with one.
class OutputMark {
 public:
  static constexpr std::string_view line = "hypertune-output";  ///< the text of the mark's line

  /// A POSIX shell script that prints the mark and then runs `script`.
  static std::string before(std::string_view script) {
    return "printf '\\n" + std::string(line) + "\\n'\n" + std::string(script);
  }

  /// The part of `piece` that the script itself printed; a view into `piece`.
  std::string_view own(std::string_view piece) {
    for (std::size_t i = 0; !passed_ && i < piece.size(); ++i) {
      // The mark has newlines only at its two ends, so after a mismatch, only a newline can begin it again.
      const char wanted = seen_ == 0 || seen_ == line.size() + 1 ? '\n' : line[seen_ - 1];
      if (piece[i] == wanted)
        ++seen_;
      else
        seen_ = piece[i] == '\n' ? 1 : 0;
      passed_ = seen_ == line.size() + 2;
      if (passed_) return piece.substr(i + 1);
    }
    return passed_ ? piece : std::string_view();
  }
  bool passed() const { return passed_; }

 private:
  std::size_t seen_ = 0;
  bool passed_ = false;
};

}  // namespace hypertune::inline v0::ssh
