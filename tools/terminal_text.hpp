// Text for a terminal: long lines are broken at spaces. Output to files and pipes is not wrapped.
#pragma once

#include <hypertune/detail/text_width.hpp>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstddef>
#include <string_view>

namespace hypertune::inline v0::command {

/// The columns of the terminal at `descriptor`; 0: it is not a terminal.
inline std::size_t terminal_width(int descriptor = STDOUT_FILENO) {
  winsize size{};
  if (::isatty(descriptor) == 0 || ::ioctl(descriptor, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

/// Prints a line on the standard output.
inline void print_line(std::string_view line) { fmt::print("{}\n", detail::terminal::wrapped(line, terminal_width())); }

}  // namespace hypertune::inline v0::command
