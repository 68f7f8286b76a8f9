// Metrics whose names mean something else somewhere: in the lines of a command, in flat tables.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/linkage.hpp>

#include <string>
#include <string_view>

namespace hypertune::inline v0::detail {

/// Why no metric of a command can be called so, as its lines mean something else by that name; empty where one can.
std::string reserved_in_report_lines(std::string_view metric);

/// What a metric is called where it stands beside our own `step` and `time`: in progress.csv, and in the JSON of a
/// report. No two metrics get the same name.
std::string metric_key(std::string_view metric);
/// The metric of a key that metric_key() made.
inline std::string metric_of_key(std::string_view key) {
  if (key.starts_with("metrics_") && metric_key(key.substr(8)) == key) key.remove_prefix(8);
  return std::string(key);
}

}  // namespace hypertune::inline v0::detail

#ifndef HYPERTUNE_COMPILED
#include <hypertune/trial/impl/metric_name.hpp>
#endif
