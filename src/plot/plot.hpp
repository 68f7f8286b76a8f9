// Plot: a chart of the page as an SVG, for papers.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::plot {

/// What plot.js draws, for who proposes it.
inline constexpr std::string_view kinds =
    "best,curves,rungs,importance,slice,contour,rank,parallel,pareto,against,hypervolume,edf,timeline,slots,lineage,"
    "schedule";

struct Picture {
  std::vector<std::filesystem::path> folders;  ///< of one experiment; of several for the kinds that draw them together
  std::string kind;                            ///< one of `kinds`
  std::vector<std::string> metrics = {}, parameters = {};
  int width = 640, height = 400;
  bool log = false, log_x = false, time = false;
  std::string title = {}, font = {}, filter = {};
};

/// The same experiment and the same picture make the same bytes. Errors: `usage` (a folder without an experiment, a
/// font that is no name), `input` (what there is not, or where there is nothing to draw: its message says which there
/// are, or why).
std::string svg(const Picture& picture);

}  // namespace hypertune::inline v0::plot
