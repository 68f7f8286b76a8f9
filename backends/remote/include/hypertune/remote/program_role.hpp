// Program roles: what a program does in place of its main() when a backend calls it with an argument of its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hypertune::inline v0::remote {

/// A backend's further use of a program beside `--hypertune-agent`. Where the program is called with `argument VALUE`,
/// its Runtime (and run_agent_if_asked()) calls `run` before anything else of main() and ends the process by what it
/// returns.
struct ProgramRole {
  std::string argument;  ///< "--hypertune-pod"
  /// `value`: the word after the argument; empty where there is none. `command`: how the program was called, its name
  /// first, without these two words. What it throws is said on standard error, and the exit code is 2.
  int (*run)(const std::string& value, std::vector<std::string> command) = nullptr;
};

/// For the initialisation of static objects, before main(): a role that is added later is not seen. Not thread-safe.
/// Returns true.
bool add_program_role(ProgramRole role);

/// Plays the role that these arguments ask for; its exit code. nullopt: they ask for none.
std::optional<int> play_program_role(int argc, char** argv);

}  // namespace hypertune::inline v0::remote
