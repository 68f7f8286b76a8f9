// From arguments to one line for the shell at the other end.
#pragma once

#include <string>
#include <vector>

namespace hypertune::inline v0::ssh {

/// A line that makes the login shell of an account, whichever it is (sh, bash, zsh, csh, fish), run exactly these
/// arguments, byte by byte, in place of itself. Error of kind `usage` if there are none, or one has a NUL, or all are
/// longer than a remote command can be (about 120 KiB).
std::string remote_command_line(const std::vector<std::string>& arguments);

}  // namespace hypertune::inline v0::ssh
