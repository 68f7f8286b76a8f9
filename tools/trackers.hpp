// Loggers of an experiment that are compiled separately.
#pragma once

#include <hypertune/config/sweep_options.hpp>

namespace hypertune::inline v0::command {

/// Adds the sweep's loggers that its reader could not create. Error of kind `usage` for one that this build lacks.
void add_trackers(Sweep& sweep);

}  // namespace hypertune::inline v0::command
