// The options of an external command and of the interpretation of its output.
#pragma once

#include <hypertune/detail/old_name.hpp>
#include <hypertune/local/command_line.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/trial/detail/command_rules.hpp>
#include <hypertune/trial/measured.hpp>
#include <hypertune/trial/trial.hpp>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::local {

/// What to do at a failure if a line of the command's output has matched.
struct LogRule {
  std::string match;  ///< a regular expression (ECMAScript), found anywhere in a line
  bool exclude_host = false;
  bool no_retry = false;
};

/// A file in the trial's folder that is made from a template before the command starts. In the command, {path} stands
/// for where it is.
struct CommandFile {
  std::string path;  ///< below the trial's folder
  std::string
      text;  ///< the template: see PlaceholderText. A line that names a parameter that is not active is left out
  PlaceholderStyle style = {.open = "@", .close = "@", .strict = false};
  std::string source = {};  ///< what the template is called in messages; empty: `path`
};

struct CommandOptions {
  std::vector<std::string> command = {};  ///< the program and its arguments, with {names}: see CommandLine
  CommandLine::Groups groups = {};        ///< arguments that are there together or not at all: see CommandLine
  std::vector<CommandFile> files = {};
  std::map<std::string, std::string> metrics =
      {};  ///< by name: a regular expression with a group, for lines without JSON
  /// By name of such a metric, what its numbers are counted in: percent, seconds, bytes or count (see NumberUnit).
  std::map<std::string, std::string> units = {};
  /// A regular expression with a group that finds the step in the line of the metrics or in one before it. Empty: each
  /// report is the next step.
  std::string step = {};
  /// What the command calls its first step, 0 or 1. By default that is 0 if the first metrics come with 0, or, in a
  /// trial that goes on from a checkpoint, with the number of steps that it had done; else 1.
  std::optional<int> first_step = {};
  /// Whether the command counts its steps anew when it goes on from a checkpoint, as XGBoost and CatBoost do.
  bool steps_of_attempt = false;
  /// What is measured of the command, by the names of the metrics. Each report has what was used until then. If all
  /// objectives are measured, the trial has one report, made at the end of the command.
  std::vector<std::pair<std::string, Measured>> measure = {};
  std::map<std::string, std::string> environment = {};  ///< added to this program's environment
  std::vector<LogRule> log_rules = {};
  Seconds stop_grace = 5;                          ///< seconds between SIGTERM and SIGKILL
  hypertune::detail::OldName<Seconds> grace = {};  ///< now stop_grace
  /// If a trial has several workers: seconds until a command that is stopped (SIGSTOP) counts as lost.
  Seconds stopped_timeout = 60;
  /// The metrics to tune. A JSON line with none of them, no step and no checkpoint is no report (programs may print
  /// their settings as JSON). Empty: every JSON line with a number is a report.
  std::vector<std::string> objectives = {};
  /// Whether the command gets environment variables for its slot (OMP_NUM_THREADS, CUDA_VISIBLE_DEVICES): for executors
  /// whose trials share a process, which cannot be bound to the slot of one trial.
  bool bind_to_slot = false;
  /// What the command prints to. With `line` it also gets TERM=dumb and NO_COLOR=1, unless `environment` has them.
  CommandOutput output = CommandOutput::pipe;
  std::vector<int> success{0};  ///< exit codes that mean success
  /// `best` needs one objective, and its mode in `modes`.
  ReportRule report = ReportRule::each;
  RepeatOptions repeat = {};               ///< more than once: `report` must not be `each`
  std::map<std::string, Mode> modes = {};  ///< of the objectives and of bounded metrics: which values are better
  /// For an experiment with Options::ordered: whether a program prints in blocks is told by its writes, not by time.
  bool ordered = false;
};

}  // namespace hypertune::inline v0::local
