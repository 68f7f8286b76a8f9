// The servers of an experiment's model: what they have written of themselves.
#pragma once

#include <filesystem>
#include <string>

namespace hypertune::inline v0::dashboard {

/// {"servers": […]}: the status of each `hypertune serve` that runs on this experiment, as it has written it into its folder
/// (`serving/N/status.json`). What is no such file, or is left from one that was killed, is passed over.
std::string serving_answer(const std::filesystem::path& experiment);

}  // namespace hypertune::inline v0::dashboard
