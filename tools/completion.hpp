// Completion in shells.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace hypertune::inline v0::command {

/// A script for `shell` (bash, zsh or fish), from the command line's own tables: commands, options, values, files.
std::string completion_of(const CLI::App& app, const std::string& shell);

}  // namespace hypertune::inline v0::command
