// Converting arguments to one line for the shell on the host.
#pragma once

#include <string>
#include <vector>

namespace hypertune::inline v0::ssh {

/// A line that makes any login shell (sh, bash, zsh, csh, fish) replace itself with exactly these arguments, byte by
/// byte. Error of kind `usage` if there are none, if one contains a NUL, or if together they are longer than a remote
/// command can be (about 120 KiB).
std::string remote_command_line(const std::vector<std::string>& arguments);

}  // namespace hypertune::inline v0::ssh
