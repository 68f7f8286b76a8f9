// Where a sweep's trials run: a row for each type of executor.
#pragma once

#include <hypertune/config/sweep_options.hpp>
#include <hypertune/execute/executor.hpp>

#include <string>
#include <vector>

namespace hypertune::inline v0::command {

/// The executor that a sweep names. `file` and `set`: where the sweep was read from; its agents read it again. Error of
/// kind `usage` if this command was built without what it needs.
AnyExecutor executor_of(const Sweep& sweep, const std::string& file, const std::vector<std::string>& set);

/// Whether its trials run the program that this machine has: on it, or on nodes that share its folders.
bool program_is_here(const Sweep& sweep);

/// "in 1 to 8 workers of Slurm": as far as the file says.
std::string where_trials_run(const Sweep& sweep);

}  // namespace hypertune::inline v0::command
