// Program roles: other functions of a program that replace its main() when a backend calls it with a special argument.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hypertune::inline v0::remote {

/// A function of a program for a backend, in addition to `--hypertune-agent`. If the program is called with `argument
/// VALUE`, its Runtime (or run_agent_if_asked()) calls `run` before anything else in main() and exits with the returned
/// code.
struct ProgramRole {
  std::string argument;  ///< "--hypertune-pod"
  /// `value`: the argument's value; empty if there is none. `command`: the program's command line, including its name,
  /// without these two arguments. Exceptions are printed to standard error, and the exit code is 2.
  int (*run)(const std::string& value, std::vector<std::string> command) = nullptr;
};

/// For the initialisation of static objects before main(); roles added later are ignored. Not thread-safe. Returns
/// true.
bool add_program_role(ProgramRole role);

/// Runs the role that the arguments ask for and returns its exit code; nullopt if they ask for none.
std::optional<int> play_program_role(int argc, char** argv);

}  // namespace hypertune::inline v0::remote
