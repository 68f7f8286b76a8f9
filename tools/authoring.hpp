// The commands that help to write files: check, init, schema, completion, man.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

namespace hypertune::inline v0::command {

/// Adds the commands; the one on the command line sets `chosen`.
void add_authoring_commands(CLI::App& app, std::function<int()>& chosen);

}  // namespace hypertune::inline v0::command
