// Finds, in the words of a command, the program that it is about: not the shell, the interpreter or the tool such as
// `nice` or `env` that starts it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::command {

/// Where the words of a command's own program begin.
struct Started {
  std::size_t program = 0;            ///< the program, an interpreter included
  std::size_t arguments = 0;          ///< its first argument: after the script or module of an interpreter
  std::optional<std::size_t> script;  ///< the word that a shell executes (sh -c SCRIPT): all else follows from it
};
/// `words` may begin with assignments, as in a shell.
Started started_by(const std::vector<std::string>& words);

/// A word of a shell's script.
struct ShellWord {
  std::size_t begin = 0, end = 0;  ///< its place in the script, with its quotes
  std::string text;                ///< without quotes
  bool expands = false;            ///< the shell replaces something in it ($x, *): `text` is not what the program gets
};
/// The commands of a script for sh(1), those in $(…) included; redirections and reserved words are left out. Empty if
/// the script has a here-document or a quote without an end.
std::vector<std::vector<ShellWord>> shell_commands(std::string_view script);

/// "name=value" with a name that a shell takes as a variable's.
bool assigns_variable(std::string_view word);

/// The words of a name, in lower case and without an s at the end: "maxEpochs" and "max_epochs" are max, epoch.
std::vector<std::string> name_words(std::string_view name);

}  // namespace hypertune::inline v0::command
