// The command line's own tables, for shells and the manual page.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::command {

/// What may stand for a value.
enum class Place { nothing, word, file, folder };

/// An option, or an argument without a name.
struct CommandWord {
  std::vector<std::string> names;   ///< "-o", "--output"; of an argument its one name: "DIR"
  std::string text;                 ///< what it means
  std::string value;                ///< the name of its value: "FORMAT"; empty: a flag
  std::vector<std::string> values;  ///< the only ones there are; empty: it is free
  Place place = Place::nothing;     ///< what is proposed for it
  bool argument = false, required = false, many = false;
};

struct CommandInfo {
  std::string name, text;
  std::vector<CommandWord> words;
};

/// All commands that the help names, with their options.
std::vector<CommandInfo> commands_of(const CLI::App& app);

/// "hypertune run SWEEP [OPTIONS]".
std::string synopsis_of(const CommandInfo& command);

}  // namespace hypertune::inline v0::command
