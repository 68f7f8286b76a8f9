// A message to the user.
#pragma once

#include <cstdio>
#include <string>

namespace hypertune::inline v0::detail {

/// Writes `line` to the standard error. It is not an error if nobody can read it (a terminal that was closed).
inline void say(std::string line) {
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace hypertune::inline v0::detail
