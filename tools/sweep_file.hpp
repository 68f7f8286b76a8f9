// Reading a sweep or a study, with the command line's changes to it.
#pragma once

#include <hypertune/config/sweep_spec.hpp>

#include <string>
#include <vector>

namespace hypertune::inline v0::command {

Sweep load_sweep(const std::string& file, const std::vector<std::string>& set, bool study);

}  // namespace hypertune::inline v0::command
