// The manual page.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace hypertune::inline v0::command {

/// hypertune(1) as roff with the macros of man(7), from the command line's own tables.
std::string man_page(const CLI::App& app);

}  // namespace hypertune::inline v0::command
