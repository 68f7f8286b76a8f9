// Runs a command to find out its options and metrics.
#pragma once

#include "init_guess.hpp"

#include <hypertune/trial/trial.hpp>

#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::command {

/// Runs a command's words up to the first option with --help, and parses the help.
CommandHelp probe_help(const std::vector<std::string>& command, Seconds timeout);

/// The reports found in a command's output.
struct ProbedReports {
  std::vector<std::string> json;                                 ///< metrics of its JSON lines, in their order
  std::vector<std::pair<std::string, std::string>> expressions;  ///< otherwise, for its text
  std::string failure;                                           ///< how the command failed, if it did
};
/// Runs the command unchanged until it has reported, or ended, or `timeout` seconds are over, and then kills it.
ProbedReports probe_reports(const std::vector<std::string>& command, Seconds timeout);

}  // namespace hypertune::inline v0::command
