// Runs a command to find out its options and metrics.
#pragma once

#include "init_guess.hpp"
#include "init_metrics.hpp"

#include <hypertune/trial/trial.hpp>

#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::command {

/// Runs each program that a command starts with --help, and parses its help.
Helps probe_help(const std::vector<std::string>& command, Seconds timeout);

/// What a command did when it was run.
struct ProbedRun {
  std::vector<FoundMetric> found;  ///< its metrics
  std::optional<int> status;       ///< of wait(2); nullopt: it was ended
  std::string failure;             ///< how it failed, if it did
  bool reported = false;           ///< it was ended because it had reported enough
  bool silent = true;              ///< it has printed nothing
  bool kept_back = false;          ///< all of its standard output arrived at its end, after a second or more
  Seconds took = 0;
};
/// Runs the command until it has reported, or ended, or `timeout` seconds are over, and then kills it. `parameters`:
/// the values with which it runs.
ProbedRun probe_command(const std::vector<std::string>& command, Seconds timeout, MetricFinder& finder,
                        const std::map<std::string, std::string>& parameters);

/// A command and its first run, unchanged.
struct FirstRun {
  const std::vector<std::string>& command;
  const ProbedRun& run;
  timespec begin{};    ///< when it began
  Seconds budget = 0;  ///< for all further runs together
};
/// Runs the command with the ends of its parameters' ranges, as far as the budget allows, and narrows a range whose end
/// the command refuses; `guess` and `pinned` are changed. Files that the command writes, and its words name, are put
/// into the trial's folder, because trials run at once. All that the runs print is added to `finder`.
void try_ends(const FirstRun& first, Guess& guess, Pinned& pinned, MetricFinder& finder);

}  // namespace hypertune::inline v0::command
