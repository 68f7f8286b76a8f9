// A report: the dashboard's page with its answers in one file, which needs no server. Needs hypertune::dashboard.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0 {

/// What a report is made of.
struct Reporting {
  std::vector<std::filesystem::path> folders = {};  ///< of experiments, or folders that have some in or below them
  /// About how large the answers in it may be together, in bytes. What has no room is left out, and the report says
  /// what. The page itself is 1.4 MB more.
  std::size_t room = 8'000'000;
  /// As DashboardServing::cost.
  std::function<std::string(const std::filesystem::path& folder)> cost = {};
};

/// The text of an HTML file: it opens from a disk, asks nobody for anything, and is what the dashboard's page shows of
/// the experiments as they are now, without logs. Errors: `usage` (no such folder, no experiment in it), or what
/// reading has.
std::string report_html(const Reporting& reporting);

/// By these words, near the beginning of a file, it is known as a report.
inline constexpr std::string_view report_mark = R"(<meta name="generator" content="hypertune report">)";

}  // namespace hypertune::inline v0
