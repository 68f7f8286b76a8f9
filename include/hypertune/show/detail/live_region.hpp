// LiveRegion: lines at the bottom of a terminal that are redrawn in place.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/text_width.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::detail::terminal {

/// Draws to a file descriptor. Each picture is one piece of text that begins where the last one began and leaves the
/// cursor, visible, on the line below. Not thread-safe.
class LiveRegion {
 public:
  struct Size {
    std::size_t width = 80, height = 24;
  };

  /// `live`: `fd` is a terminal on which pictures are drawn.
  LiveRegion(int fd, bool live) : fd_(fd) {
    // A separate open file that does not block: O_NONBLOCK on the given descriptor would also affect the shell.
    if (live)
      own_ = ::open(detail::format("/proc/self/fd/{}", fd).c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (own_ >= 0) fd_ = own_;
  }
  LiveRegion(const LiveRegion&) = delete;
  LiveRegion& operator=(const LiveRegion&) = delete;
  ~LiveRegion() {
    if (own_ >= 0) ::close(own_);
  }

  /// Whether pictures can be drawn on `fd`.
  static bool possible(int fd) {
    const char* const term = std::getenv("TERM");
    return ::isatty(fd) == 1 && term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
  }

  /// Asked for every picture, because a window may change.
  Size size() const {
    winsize window{};
    Size size;
    if (::ioctl(fd_, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 && window.ws_row > 0)
      size = {window.ws_col, window.ws_row};
    return size;
  }

  /// Replaces the picture. Lines may contain colour codes, must not be wider than `size`, and must be fewer than its
  /// height. While the terminal has not accepted earlier output (Ctrl-S), pictures are skipped.
  void draw(const std::vector<std::string>& lines, Size size) {
    if (!foreground() || !flush(20) || (lines == lines_ && size.width == width_)) return;
    pending_ += "\x1b[?25l\x1b[?7l" + back(size);
    // Each line is cleared first: after a line as wide as the terminal, the cursor is still on its last character.
    for (const auto& line : lines) pending_ += "\x1b[K" + line + "\r\n";
    pending_ += "\x1b[J\x1b[?7h\x1b[?25h";
    lines_ = lines;
    width_ = size.width;
    flush(20);
  }

  /// Prints a permanent line above the picture; the next draw() puts the picture below it.
  void print(std::string_view line, Size size) {
    pending_ += back(size) + "\x1b[J" + std::string(line) + "\r\n";
    lines_.clear();
    flush(20);
  }

  /// Prints a line if there is no terminal.
  void append(std::string_view line) {
    pending_ += std::string(line) + "\n";
    flush(250);
  }

  /// Waits at most `milliseconds` until the output is accepted. False: no more is accepted now, or the reader is gone.
  bool flush(int milliseconds) {
    constexpr std::size_t piece = 1024;  // fits into a pipe that is ready
    if (gone_) pending_.clear();
    const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    while (!pending_.empty()) {
      pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
      const int n = ::poll(&ready, 1, milliseconds);
      if (n > 0 && (ready.revents & POLLOUT) != 0) {
        const ssize_t written = ::write(fd_, pending_.data(), std::min(pending_.size(), piece));
        if (written > 0) {
          pending_.erase(0, static_cast<std::size_t>(written));
          continue;
        }
        gone_ = written < 0 && errno != EAGAIN && errno != EINTR;
      } else if (n > 0) {
        gone_ = true;
      }
      if (gone_ || std::chrono::steady_clock::now() >= limit) return false;
      ::poll(nullptr, 0, 5);  // a terminal may say that it is ready and accept nothing
    }
    return !gone_;
  }

 private:
  /// Moves from below the last picture to its beginning. A terminal that became narrower has wrapped its lines.
  std::string back(Size size) const {
    std::size_t rows = 0;
    for (const auto& line : lines_)
      rows += std::max<std::size_t>(1, (visible_width(line) + size.width - 1) / size.width);
    rows = std::min(rows, size.height - 1);
    return rows == 0 ? "\r" : detail::format("\r\x1b[{}A", rows);
  }

  /// The width of a line without its colour codes.
  static std::size_t visible_width(std::string_view line) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] == '\x1b')
        i = std::min(line.find('m', i), line.size());
      else
        text += line[i];
    }
    return text_width(text);
  }

  /// False in the background, where drawing would overwrite what the user does now.
  bool foreground() const {
    const pid_t group = ::tcgetpgrp(fd_);
    return group < 0 || group == ::getpgrp();
  }

  int fd_;
  int own_ = -1;
  bool gone_ = false;
  std::string pending_;  // not accepted yet
  std::vector<std::string> lines_;
  std::size_t width_ = 0;
};

}  // namespace hypertune::inline v0::detail::terminal
