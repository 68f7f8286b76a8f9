// The cost of an experiment on a cluster, as text and as JSON.
#pragma once

#include <hypertune/record/results.hpp>

#include <filesystem>
#include <string>

namespace hypertune::inline v0::command {

/// One line: host hours, money, savings, repeated steps. Empty if the experiment never ran on a cluster.
std::string cost_line(const std::filesystem::path& directory, const Results& results);
/// The same as JSON; "null" if it never did.
std::string cost_json(const std::filesystem::path& directory, const Results& results);
/// For a dashboard: {"spent", "rate" (per hour, of running machines), "currency", "budget"}; "null" if it never did.
std::string cost_brief(const std::filesystem::path& directory);

}  // namespace hypertune::inline v0::command
