// Generates the manual page.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace hypertune::inline v0::command {

/// hypertune(1) in roff with the macros of man(7), from the tables of the command line.
std::string man_page(const CLI::App& app);

}  // namespace hypertune::inline v0::command
