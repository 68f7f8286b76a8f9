// Metrics whose names mean something else somewhere: in the lines of a command, in flat tables.
#pragma once

#include <hypertune/detail/format.hpp>

#include <string>
#include <string_view>

namespace hypertune::detail {

/// Why no metric of a command can be called so, as its lines mean something else by that name; empty where one can.
inline std::string reserved_in_report_lines(std::string_view metric) {
  const std::string_view means = metric == "step"         ? "the number of its step"
                                 : metric == "checkpoint" ? "the checkpoint that was saved"
                                                          : "";
  if (means.empty()) return "";
  return detail::format("no metric can be called '{}', as that is how a report's line calls {}: take another name{}",
                        metric, means, metric == "step" ? " (epoch, say)" : "");
}

/// What a metric is called where it stands beside our own `step` and `time`: in progress.csv, and in the JSON of a
/// report. No two metrics get the same name.
inline std::string metric_key(std::string_view metric) {
  std::string_view core = metric;
  while (core.starts_with("metrics_")) core.remove_prefix(8);
  return core == "step" || core == "time" ? "metrics_" + std::string(metric) : std::string(metric);
}
/// The metric of a key that metric_key() made.
inline std::string metric_of_key(std::string_view key) {
  if (key.starts_with("metrics_") && metric_key(key.substr(8)) == key) key.remove_prefix(8);
  return std::string(key);
}

}  // namespace hypertune::detail
