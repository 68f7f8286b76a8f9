// Plot: renders a chart of the page as an SVG, for papers.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::plot {

/// The kinds of charts, for help texts and completion.
inline constexpr std::string_view kinds =
    "best,curves,rungs,importance,slice,contour,rank,parallel,pareto,against,hypervolume,edf,timeline,slots,lineage,"
    "schedule";

struct Picture {
  std::vector<std::filesystem::path> folders;  ///< of one experiment; of several for kinds that can draw them together
  std::string kind;                            ///< one of `kinds`
  std::vector<std::string> metrics = {}, parameters = {};
  int width = 640, height = 400;
  bool log = false, log_x = false, time = false;
  std::string title = {}, font = {}, filter = {};
};

/// Deterministic: the same experiment and options give the same bytes. Errors: `usage` (a folder without an experiment,
/// an invalid font name), `input` (a name that does not exist, or nothing to draw; the message lists the existing
/// names, or says why).
std::string svg(const Picture& picture);

}  // namespace hypertune::inline v0::plot
