// What is allowed in a sweep and hardly meant.
#pragma once

#include <hypertune/config/sweep_spec.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace hypertune::inline v0::command {

/// One line each. `parallel`: trials that run at once here, 0 where they run elsewhere. `cores`: of this machine.
std::vector<std::string> warnings_about(const Sweep& sweep, int parallel, int cores);

}  // namespace hypertune::inline v0::command
