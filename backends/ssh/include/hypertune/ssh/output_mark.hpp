// Where the output of a script begins: the start-up files of an account may print before it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hypertune::inline v0::ssh {

/// Passes over what comes before a script's own output, in as many pieces as it comes. What start-up files print may
/// lack the end of its line, so that the mark begins with one.
class OutputMark {
 public:
  static constexpr std::string_view line = "hypertune-output";  ///< what stands alone on a line then

  /// A script of a POSIX shell that prints the mark first.
  static std::string before(std::string_view script) {
    return "printf '\\n" + std::string(line) + "\\n'\n" + std::string(script);
  }

  /// What of a piece is the script's. It holds as long as the piece does.
  std::string_view own(std::string_view piece) {
    for (std::size_t i = 0; !passed_ && i < piece.size(); ++i) {
      // The mark has one newline at each end only: what fails to match may begin it anew, but with a newline.
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
