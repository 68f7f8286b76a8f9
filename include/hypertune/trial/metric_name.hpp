// Names of metrics that have another meaning in some places: the report lines of a command, flat tables.
#pragma once

#include <hypertune/detail/format.hpp>

#include <string>
#include <string_view>

namespace hypertune::inline v0::detail {

/// Why no metric can have this name: it has control characters, such as a line break. Empty: it can.
std::string refused_name(std::string_view metric);

/// Why a command cannot have a metric of this name: its report lines use the name for something else, or
/// refused_name(). Empty: it can.
std::string reserved_in_report_lines(std::string_view metric);

/// The name of a metric in places where hypertune's own `step` stands beside it: progress.csv, the JSON of a report, and
/// `best_…` of tables. It is the metric's own name, except that one called `step` (which only programs can have) is
/// `metrics_step`. Different metrics have different names there, too.
std::string metric_key(std::string_view metric);
/// The metric of a key that metric_key() made.
inline std::string metric_of_key(std::string_view key) {
  if (key.starts_with("metrics_") && metric_key(key.substr(8)) == key) key.remove_prefix(8);
  return std::string(key);
}

}  // namespace hypertune::inline v0::detail
