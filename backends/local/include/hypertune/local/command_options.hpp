// What a command is, and what its output means.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <map>
#include <string>
#include <vector>

namespace hypertune::inline v0::local {

/// What to do about a failure when a line of the command's output matches.
struct LogRule {
  std::string match;  ///< a regular expression (ECMAScript), found anywhere in a line
  bool exclude_host = false;
  bool no_retry = false;
};

struct CommandOptions {
  std::vector<std::string> command = {};  ///< the program and its arguments, with {names}: see CommandLine
  std::map<std::string, std::string> metrics =
      {};  ///< by name, a regular expression with one group, for lines without JSON
  std::map<std::string, std::string> environment = {};  ///< added to this program's
  std::vector<LogRule> log_rules = {};
  Seconds grace = 5;  ///< seconds between SIGTERM and SIGKILL
  /// Of a trial of several workers: seconds until a command that is stopped (SIGSTOP) is taken for lost.
  Seconds stop_limit = 60;
  /// The metrics that are tuned. A line of JSON that has none of them, no step and no checkpoint is no report (a
  /// program may print its settings so). Empty: every line of JSON with a number in it is one.
  std::vector<std::string> objectives = {};
  /// Whether the command is told its slot (OMP_NUM_THREADS, CUDA_VISIBLE_DEVICES): for executors whose trials share a
  /// process, which cannot be bound to the slot of one of them.
  bool bind_to_slot = false;
};

}  // namespace hypertune::inline v0::local
