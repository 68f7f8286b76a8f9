// The commands that make documents from an experiment: report, plot.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

namespace hypertune::inline v0::command {

/// Adds the commands; the one on the command line sets `chosen`.
void add_document_commands(CLI::App& app, std::function<int()>& chosen);

}  // namespace hypertune::inline v0::command
