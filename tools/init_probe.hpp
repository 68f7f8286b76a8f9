// What a command says of itself when it is run.
#pragma once

#include "init_guess.hpp"

#include <hypertune/trial/trial.hpp>

#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::command {

/// The help of the program that a command runs: its words up to the first option, and --help.
CommandHelp probe_help(const std::vector<std::string>& command, Seconds timeout);

/// What a command reports.
struct ProbedReports {
  std::vector<std::string> json;                                 ///< metrics of its JSON lines, in their order
  std::vector<std::pair<std::string, std::string>> expressions;  ///< else of its text: names and expressions
  std::string failure;                                           ///< how it failed, where it did
};
/// Runs the command as it stands until it has reported, or ended, or `timeout` seconds are over, and ends it.
ProbedReports probe_reports(const std::vector<std::string>& command, Seconds timeout);

}  // namespace hypertune::inline v0::command
