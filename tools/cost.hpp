// What an experiment has cost on a cluster, for people and programs.
#pragma once

#include <hypertune/record/results.hpp>

#include <filesystem>
#include <string>

namespace hypertune::inline v0::command {

/// One line: host hours, money, what was saved, steps done twice. Empty where the experiment never ran on a cluster.
std::string cost_line(const std::filesystem::path& directory, const Results& results);
/// The same as JSON; "null" where there is nothing.
std::string cost_json(const std::filesystem::path& directory, const Results& results);
/// As a dashboard has it: {"spent", "rate" (per hour, of what runs), "currency", "budget"}; "null" where there is
/// nothing.
std::string cost_brief(const std::filesystem::path& directory);

}  // namespace hypertune::inline v0::command
