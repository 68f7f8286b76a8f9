// Guesses from a command's words which of its options may vary, and how.
#pragma once

#include "init_help.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::command {

/// What a parameter may be: some values, or the numbers of a range.
struct Domain {
  std::string type;                  ///< uniform, log_uniform, integer, log_int, choice, ordinal
  double low = 0, high = 0;          ///< the bounds of a range
  std::vector<std::string> options;  ///< the values of a choice or ordinal, as the command gets them

  bool whole() const { return type == "integer" || type == "log_int"; }
  bool of_options() const { return type == "choice" || type == "ordinal"; }
  /// As it stands in a sweep: "{log_uniform: [0.001, 0.1]}".
  std::string text() const;
};

/// A number as YAML of every version reads it: 1.0e-05 for 1e-05.
std::string number_text(double x);

struct Parameter {
  std::string name;
  Domain domain;
  std::string given;    ///< its value in the command
  std::string comment;  ///< what it was guessed from
};

/// The help of each program that a command starts, by the words with which it is started.
using Helps = std::map<std::string, CommandHelp>;
/// Reasons not to vary a parameter, by its name.
using Pinned = std::map<std::string, std::string>;

struct Guess {
  std::vector<std::string> command;  ///< with {placeholders}
  std::vector<Parameter> space;
  std::vector<std::string> left;    ///< options that are not changed, with the reason
  std::vector<std::string> notes;   ///< what else is to be known of the command
  std::optional<int> steps;         ///< the value of the option for the number of epochs or steps
  std::optional<int> threads;       ///< … of threads or processes
  std::vector<std::string> shared;  ///< files that all trials would write
  double writes = 0;                ///< most bytes that a run wrote into the trial's own folder
  std::vector<std::pair<std::string, std::string>> moved;  ///< files that each trial has for itself, and where
};

/// Turns options with a value (`--name value`, `--name=value`, `-n value`, `-n5`, `name=value`) into parameters, except
/// those that name files or machines, or say how long to train or with what means. `helps` may be empty.
Guess guess_from(const std::vector<std::string>& command, const Helps& helps, const Pinned& pinned = {});

/// Puts `to` in place of a file's name wherever the command's words have it.
void move_file(Guess& guess, const std::string& from, const std::string& to);

/// How to ask for the help of each program that a command starts.
struct HelpRun {
  std::string program;               ///< its key in Helps
  std::vector<std::string> command;  ///< to which --help, or another option for help, is added
  bool script = false;               ///< … within the last word, a script
};
std::vector<HelpRun> help_runs(const std::vector<std::string>& command);

/// Quotes a text if YAML would otherwise not read it as a string.
std::string yaml_text(const std::string& text);

}  // namespace hypertune::inline v0::command
