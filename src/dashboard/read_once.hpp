// Reads experiments once, without a server: for reports and charts.
#pragma once

#include "experiments.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::dashboard {

/// The experiments in these folders and below them, read up to the present end of their Journals. Error of kind `usage`
/// if one is no folder, or none has an experiment; if an experiment that was named cannot be read, the Error of reading
/// it.
std::unique_ptr<Experiments> read_once(const std::vector<std::filesystem::path>& folders);

/// A file of the page, decompressed; nullopt: there is no such file.
std::optional<std::string> page_text(std::string_view path);

}  // namespace hypertune::inline v0::dashboard
