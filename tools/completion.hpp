// Shell completion.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace hypertune::inline v0::command {

/// A completion script for `shell` (bash, zsh or fish) with commands, options, values and files.
std::string completion_of(const CLI::App& app, const std::string& shell);

}  // namespace hypertune::inline v0::command
