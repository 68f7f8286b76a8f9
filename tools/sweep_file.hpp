// Reading a sweep or a study, with the command line's changes to it.
#pragma once

#include <hypertune/config/sweep_spec.hpp>
#include <hypertune/config/yaml.hpp>

#include <string>
#include <vector>

namespace hypertune::inline v0::command {

/// The file, with `set` (key=value) in place of what it says.
Node load_with(const std::string& file, const std::vector<std::string>& set);

/// Error of kind `input` where nothing says how many trials there are.
void require_bounded(const Sweep& sweep);

Sweep load_sweep(const std::string& file, const std::vector<std::string>& set, bool study);

}  // namespace hypertune::inline v0::command
