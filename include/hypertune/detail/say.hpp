// A line for the user.
#pragma once

#include <cstdio>
#include <string>

namespace hypertune::inline v0::detail {

/// Writes `line` to the standard error. Nobody may be left to read it (a terminal that was closed): that is no error.
inline void say(std::string line) {
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace hypertune::inline v0::detail
