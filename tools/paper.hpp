// The commands that make files of an experiment for people: report, plot.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

namespace hypertune::inline v0::command {

/// Adds the commands; the one that is given sets `chosen`.
void add_paper_commands(CLI::App& app, std::function<int()>& chosen);

}  // namespace hypertune::inline v0::command
