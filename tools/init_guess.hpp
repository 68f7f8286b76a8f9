// What of a command may vary, and how, as far as its words tell.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::command {

/// What the help of a command says of an option.
struct OptionHelp {
  std::vector<std::string> choices;
  std::string fallback;    ///< its default, as printed
  std::string type;        ///< INT, FLOAT, …, where it is printed so
  bool flag = false;       ///< it takes no value
  bool negatable = false;  ///< there is --no-NAME as well
};
using CommandHelp = std::map<std::string, OptionHelp>;  ///< by name, without dashes

/// Reads what argparse and CLI11, and those that print alike, say to --help.
CommandHelp read_help(std::string_view text);

struct Parameter {
  std::string name;
  std::string domain;   ///< "{log_uniform: [0.001, 0.1]}"
  std::string comment;  ///< what it was guessed from
};

struct Guess {
  std::vector<std::string> command;  ///< with {placeholders}
  std::vector<Parameter> space;
  std::vector<std::string> left;  ///< options that stay as they are, with the reason
  std::optional<int> steps;       ///< epochs, or what else says how long it trains
};

/// Options with a value, `--name value`, `--name=value`, `-n value` and `name=value`, become parameters, but for what
/// names files, machines or how long to train. `help` may be empty.
Guess guess_from(const std::vector<std::string>& command, const CommandHelp& help);

/// A domain round a number, or a word.
std::string domain_round(const std::string& name, const std::string& value, const OptionHelp& help, std::string& why);

/// A text as YAML takes it for a text.
std::string yaml_text(const std::string& text);

}  // namespace hypertune::inline v0::command
