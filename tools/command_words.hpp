// The commands and options of the command line as tables, for shell completion and the manual page.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::command {

/// What kind of completion an argument gets.
enum class Place { nothing, word, file, folder };

/// An option, or an argument without a name.
struct CommandWord {
  std::vector<std::string> names;   ///< "-o", "--output"; for an argument, its only name: "DIR"
  std::string text;                 ///< its description
  std::string value;                ///< the name of its value: "FORMAT"; empty: a flag
  std::vector<std::string> values;  ///< the allowed values; empty: any
  Place place = Place::nothing;     ///< the kind of its completion
  bool argument = false, required = false, many = false;
};

struct CommandInfo {
  std::string name, text, group;  ///< `group`: its heading in the help
  std::vector<CommandWord> words;
};

/// All commands that the help lists, with their options.
std::vector<CommandInfo> commands_of(const CLI::App& app);

/// "hypertune run SWEEP [OPTIONS]".
std::string synopsis_of(const CommandInfo& command);

}  // namespace hypertune::inline v0::command
