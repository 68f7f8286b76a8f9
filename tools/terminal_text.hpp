// Lines for whoever looks at a terminal: broken at spaces where it is narrow. Elsewhere they stay as they are.
#pragma once

#include <hypertune/detail/text_width.hpp>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstddef>
#include <string_view>

namespace hypertune::inline v0::command {

/// The columns of the terminal behind `descriptor`; 0: it is none.
inline std::size_t terminal_width(int descriptor = STDOUT_FILENO) {
  winsize size{};
  if (::isatty(descriptor) == 0 || ::ioctl(descriptor, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

/// A line on the standard output.
inline void print_line(std::string_view line) { fmt::print("{}\n", detail::terminal::wrapped(line, terminal_width())); }

}  // namespace hypertune::inline v0::command
