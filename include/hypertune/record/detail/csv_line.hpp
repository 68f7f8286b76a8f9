// Reading of CSV, line by line.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

/// The fields of the first line of `text` (RFC 4180: a quoted field may have line ends in it) and the length of that
/// line with its end. nullopt if the line is not complete.
inline std::optional<std::pair<std::vector<std::string>, std::size_t>> csv_line(std::string_view text) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"')
      fields.back() += text[i++];
    else if (c == '"')
      quoted = !quoted;
    else if (quoted)
      fields.back() += c;
    else if (c == ',')
      fields.emplace_back();
    else if (c == '\n')
      return std::pair(std::move(fields), i + 1);
    else if (c != '\r')
      fields.back() += c;
  }
  return std::nullopt;
}

}  // namespace hypertune::inline v0::detail
