// Warnings about valid settings of a sweep that are probably mistakes.
#pragma once

#include <hypertune/config/sweep_options.hpp>
#include <hypertune/config/yaml.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace hypertune::inline v0::command {

/// One line each. `parallel`: trials that run at the same time here, 0 if they run elsewhere. `cores`: of this machine.
std::vector<std::string> warnings_about(const Sweep& sweep, int parallel, int cores);
/// Warns of loggers that would write nothing.
void about_loggers(const Node& root, std::vector<std::string>& warnings);

}  // namespace hypertune::inline v0::command
