// What is allowed in a sweep and hardly meant.
#pragma once

#include <hypertune/config/sweep_spec.hpp>
#include <hypertune/config/yaml.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace hypertune::inline v0::command {

/// One line each. `parallel`: trials that run at once here, 0 where they run elsewhere. `cores`: of this machine.
std::vector<std::string> warnings_about(const Sweep& sweep, int parallel, int cores);
/// Of loggers that would write nothing.
void about_loggers(const Node& root, std::vector<std::string>& warnings);

}  // namespace hypertune::inline v0::command
