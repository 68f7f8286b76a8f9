// Guesses from a command's words which of its options may vary, and how.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::command {

/// What a command's help says about an option.
struct OptionHelp {
  std::vector<std::string> choices;
  std::string fallback;    ///< its default, as printed
  std::string type;        ///< INT, FLOAT, …, if the help prints the type so
  bool flag = false;       ///< it takes no value
  bool negatable = false;  ///< there is also --no-NAME
};
using CommandHelp = std::map<std::string, OptionHelp>;  ///< by name, without dashes

/// Parses the output of --help of argparse, CLI11, and libraries with the same format.
CommandHelp read_help(std::string_view text);

struct Parameter {
  std::string name;
  std::string domain;   ///< "{log_uniform: [0.001, 0.1]}"
  std::string comment;  ///< what it was guessed from
};

struct Guess {
  std::vector<std::string> command;  ///< with {placeholders}
  std::vector<Parameter> space;
  std::vector<std::string> left;  ///< options that are not changed, with the reason
  std::optional<int> steps;       ///< the value of the option for the number of epochs or steps
};

/// Turns options with a value (`--name value`, `--name=value`, `-n value`, `name=value`) into parameters, except those
/// that name files or machines, or say how long to train. `help` may be empty.
Guess guess_from(const std::vector<std::string>& command, const CommandHelp& help);

/// A domain around a number, or with a word as one of its choices; `why` is set to the reason.
std::string domain_around(const std::string& name, const std::string& value, const OptionHelp& help, std::string& why);

/// Quotes a text if YAML would otherwise not read it as a string.
std::string yaml_text(const std::string& text);

}  // namespace hypertune::inline v0::command
