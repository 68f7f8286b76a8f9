// The command lines of the commands in commands.hpp: names, options, help.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

namespace hypertune::inline v0::command {

// Each adds commands; the one on the command line sets `chosen`.

void add_run_command(CLI::App& app, std::function<int()>& chosen);
void add_status_command(CLI::App& app, std::function<int()>& chosen);
/// results, best, dashboard, list, compare
void add_result_commands(CLI::App& app, std::function<int()>& chosen);
/// stop, pause, continue, resize, add, note
void add_control_commands(CLI::App& app, std::function<int()>& chosen);
/// export, what-if, import
void add_exchange_commands(CLI::App& app, std::function<int()>& chosen);
void add_study_command(CLI::App& app, std::function<int()>& chosen);
void add_serve_command(CLI::App& app, std::function<int()>& chosen);

}  // namespace hypertune::inline v0::command
