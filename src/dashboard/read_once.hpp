// What is made of experiments once, without a server: reports and charts.
#pragma once

#include "experiments.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::dashboard {

/// The experiments in these folders and below them, read to where their Journals end now. Error of kind `usage` for
/// what is no folder, or has no experiment; of the kind that reading has, where one of those that were named cannot be
/// read.
std::unique_ptr<Experiments> read_once(const std::vector<std::filesystem::path>& folders);

/// A file of the page as it was before it was compressed; nullopt: there is none.
std::optional<std::string> page_text(std::string_view path);

}  // namespace hypertune::inline v0::dashboard
