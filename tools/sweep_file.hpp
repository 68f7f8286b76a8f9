// Reads a sweep or a study, with the changes of the command line.
#pragma once

#include <hypertune/config/sweep_options.hpp>
#include <hypertune/config/yaml.hpp>

#include <string>
#include <vector>

namespace hypertune::inline v0::command {

/// Reads the file, and applies `set` (key=value) to it.
Node load_with(const std::string& file, const std::vector<std::string>& set);

/// Error of kind `input` if nothing limits the number of trials.
void require_bounded(const Sweep& sweep);

Sweep load_sweep(const std::string& file, const std::vector<std::string>& set, bool study);

}  // namespace hypertune::inline v0::command
