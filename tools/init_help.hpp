// Reads what a program's --help says about its options.
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
  std::optional<double> low, high;  ///< its range, if the help has one
  bool above_low = false;           ///< `low` itself is no value
  bool below_high = false;          ///< nor is `high`
  std::string fallback;             ///< its default, as printed
  std::string type;                 ///< INT, FLOAT, BOOL, if the help prints the type so
  std::string value;                ///< how the help calls its value: N, FILE, cost
  std::string text;                 ///< the description
  std::vector<std::string> names;   ///< all of its names, with dashes
  bool known = false;               ///< the help lists it
  bool flag = false;                ///< it takes no value
  bool negatable = false;           ///< there is also --no-NAME
};
using CommandHelp = std::map<std::string, OptionHelp>;  ///< by name, without dashes

/// Parses the output of --help of argparse, CLI11, getopt's users, and others with a line for each option.
CommandHelp read_help(std::string_view text);

/// Another option that prints more help, if the help names one: --fullhelp, --help-all.
std::string longer_help(std::string_view text);

}  // namespace hypertune::inline v0::command
