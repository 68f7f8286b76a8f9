// The units that programs print behind the numbers of a metric: noted with the experiment, so that trials which print
// different ones are told from each other.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/trial/trial.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::detail {

inline constexpr std::string_view unit_of = "unit of ";

/// The attribute of the experiment that says in which unit a metric's values were read.
inline std::string unit_attribute(std::string_view metric) { return std::string(unit_of) += metric; }

/// Its text: "ms (trial 0)".
inline std::string unit_of_first(std::string_view unit, TrialId trial) { return format("{} (trial {})", unit, trial); }

/// The text after another trial's report, if it changes: its unit is another one than the one that was noted. Once that
/// has been said, nothing changes any more.
inline std::optional<std::string> unit_of_another(std::string_view noted, std::string_view metric,
                                                  std::string_view unit, TrialId trial) {
  const auto open = noted.find(" (trial ");
  if (open == std::string_view::npos || !noted.ends_with(')') || noted.substr(0, open) == unit) return std::nullopt;
  const auto first = noted.substr(0, open);
  static constexpr std::array<std::string_view, 7> times{"ns", "us", "ms", "s", "min", "h", "d"};
  const auto is_time = [](std::string_view text) { return std::find(times.begin(), times.end(), text) != times.end(); };
  return detail::format(
      "{} in trial {}, {} in trial {}: values in different units cannot be compared; print one unit always, or name "
      "it: metrics: {{{}: {{match: …, unit: {}}}}}",
      first, noted.substr(open + 8, noted.size() - open - 9), unit, trial, metric,
      is_time(first) && is_time(unit)                                                         ? "seconds"
      : first.find('B') != std::string_view::npos && unit.find('B') != std::string_view::npos ? "bytes"
                                                                                              : "…");
}

/// Whether an attribute of the experiment says that trials differ in a metric's unit.
inline bool says_units_differ(std::string_view name, std::string_view text) {
  return name.starts_with(unit_of) && text.find(" in trial ") != std::string_view::npos;
}

}  // namespace hypertune::inline v0::detail
