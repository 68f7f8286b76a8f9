// Running a program until it ends: its input, its output, and a timeout.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::cluster {

struct ProgramCall {
  std::vector<std::string> arguments;                                  ///< the program first; searched in PATH
  std::string input = {};                                              ///< its standard input
  bool hold_input = false;                                             ///< its standard input stays open until it ends
  std::map<std::string, std::optional<std::string>> environment = {};  ///< added to this process's own
  double timeout = 300;                                                ///< seconds; then its process group is killed
  std::size_t max_output = std::size_t{8} << 20U;                      ///< bytes kept of each stream; more is dropped
  /// A file that is locked while the program runs, even if the process that started it dies (see wait_for_calls()).
  std::filesystem::path lock = {};
  std::function<void(std::string_view)> on_output = {};  ///< gets the output of both streams as it arrives
  std::function<void(std::string_view)> on_errors = {};  ///< gets only the standard error
  std::stop_token stop = {};                             ///< kills the program
};

struct ProgramResult {
  int code = 0;  ///< exit code; 128 + signal for one that was killed
  bool timed_out = false, cancelled = false, truncated = false;
  std::string output, errors;
  bool ok() const { return code == 0 && !timed_out && !cancelled; }
  /// Why ok() is false, in one line: exit code or signal, and the last lines of the output.
  std::string why() const;
};

/// Runs a program in its own process group, so that Ctrl-C at the terminal does not reach it. Error of kind `usage` if
/// there is no such program.
ProgramResult run_program(const ProgramCall& call);

/// The process that holds the lock of a ProgramCall; 0: none.
int lock_holder(const std::filesystem::path& lock);

/// Waits until no program that was started with this lock runs any more. After `seconds`, throws an error of kind
/// `busy` that names the program.
void wait_for_calls(const std::filesystem::path& lock, double seconds);

}  // namespace hypertune::inline v0::cluster
