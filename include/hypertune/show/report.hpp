// A report: the dashboard's page and its data in one file that needs no server. Needs hypertune::dashboard.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0 {

/// Options of report_html().
struct Reporting {
  std::vector<std::filesystem::path> folders = {};  ///< of experiments, or folders that contain some at any depth
  /// Approximate limit of the data in the report, in bytes. Data that exceeds it is left out, and the report says what
  /// is missing. The page itself adds 1.4 MB.
  std::size_t room = 8'000'000;
  /// As DashboardServing::cost.
  std::function<std::string(const std::filesystem::path& folder)> cost = {};
};

/// The text of an HTML file that can be opened from a disk and makes no requests. It shows what the dashboard's page
/// shows of the experiments as they are now, without logs. Errors: `usage` (no such folder, no experiment in it), and
/// those of reading an experiment.
std::string report_html(const Reporting& reporting);

/// A file is recognized as a report by this text near its beginning.
inline constexpr std::string_view report_mark = R"(<meta name="generator" content="hypertune report">)";

}  // namespace hypertune::inline v0
