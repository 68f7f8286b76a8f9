// A report as a command prints it: one line, one JSON object; or a number that an expression finds in a line.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/trial/report.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::local {

/// What such a line says.
struct ReportLine {
  Metrics metrics;  ///< its numbers, booleans (0 or 1), and the words NaN, Infinity, -Infinity, quoted or not
  std::optional<int> step;
  std::optional<std::string> checkpoint;
  std::vector<std::pair<std::string, std::string>> texts;  ///< its further members that are text

  const std::string* text(std::string_view name) const;
};

/// The start of a line as a message quotes it: without control characters, and of no more than `most` bytes.
std::string shortened(std::string_view line, std::size_t most = 120);

/// The number that an expression found in a line: the whole text is one, or there is none and `why` says so. Commas
/// that can only stand between thousands are taken for that: 1,234.5 and 1,234,567. In 1,234 the comma may as well be a
/// decimal one.
std::optional<double> number_in_text(std::string_view text, std::string& why);

/// nullopt: the line is no JSON object with a metric or a checkpoint in it, or a text beside a step, but something else
/// that the command printed; `why` says what it lacks.
std::optional<ReportLine> parse_report_line(std::string_view text, std::string* why = nullptr);

}  // namespace hypertune::inline v0::local

#ifndef HYPERTUNE_COMPILED
#include <hypertune/local/impl/report_line.hpp>
#endif
