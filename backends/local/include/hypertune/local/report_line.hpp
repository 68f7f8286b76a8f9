// Parses reports that commands print: a line with one JSON object.
#pragma once

#include <hypertune/trial/report.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::local {

/// The contents of a line with a JSON object.
struct ReportLine {
  Metrics metrics;  ///< numbers, booleans (as 0 or 1), and NaN, Infinity and -Infinity, quoted or not
  std::optional<int> step;
  std::optional<std::string> checkpoint;
  std::vector<std::pair<std::string, std::string>> texts;  ///< all other members that are strings

  const std::string* text(std::string_view name) const;
};

/// The start of a line, for messages: without control characters, at most `most` bytes.
std::string shortened(std::string_view line, std::size_t most = 120);

/// Parses a line. nullopt if it is no JSON object with a metric, a checkpoint, or a step and a text: then it is other
/// output, and `why` says what is missing.
std::optional<ReportLine> parse_report_line(std::string_view text, std::string* why = nullptr);

}  // namespace hypertune::inline v0::local
