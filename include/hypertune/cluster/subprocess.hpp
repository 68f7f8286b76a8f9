// Running a program to its end: what it is given, what it says, and how long it may take.
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
  std::vector<std::string> arguments;  ///< the program first; looked up in PATH
  std::string input = {};              ///< its standard input
  bool hold_input = false;             ///< its standard input does not end before it does
  std::map<std::string, std::optional<std::string>> environment = {};  ///< added to this process's own
  double timeout = 300;                                                ///< seconds; then its process group is killed
  std::size_t max_output = std::size_t{8} << 20U;                      ///< bytes kept of each stream; more is dropped
  /// A file that is locked as long as the program runs, whoever started it dies or not (see calls_in_flight()).
  std::filesystem::path lock = {};
  std::function<void(std::string_view)> on_output = {};  ///< what it says, both streams, as it comes
  std::function<void(std::string_view)> on_errors = {};  ///< its standard error, apart from the other
  std::stop_token stop = {};                             ///< kills the program
};

struct ProgramResult {
  int code = 0;  ///< exit code; 128 + signal for one that was killed
  bool timed_out = false, cancelled = false, truncated = false;
  std::string output, errors;
  bool ok() const { return code == 0 && !timed_out && !cancelled; }
  /// Why it is not ok, in one line: exit code or signal, and the last lines that it said.
  std::string why() const;
};

/// Runs a program in a process group of its own: a Ctrl-C at the terminal does not reach it. Error of kind `usage` when
/// there is no such program.
ProgramResult run_program(const ProgramCall& call);

/// The process that holds the lock of a ProgramCall now; 0: none.
int lock_holder(const std::filesystem::path& lock);

/// Waits until no program that was started with this lock runs any more. Error of kind `busy` that names it after
/// `seconds`.
void wait_for_calls(const std::filesystem::path& lock, double seconds);

}  // namespace hypertune::inline v0::cluster
