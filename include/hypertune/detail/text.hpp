// Parts of texts: up to a character, the first line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hypertune::inline v0::detail {

/// Removes the text before the first `end` from the front of `rest`, together with that `end`, and returns it. All of
/// `rest` if there is no `end`. `while (!text.empty()) take_until(text, '\n')` gives all lines.
constexpr std::string_view take_until(std::string_view& rest, char end) {
  const auto part = rest.substr(0, rest.find(end));
  rest.remove_prefix(part.size() < rest.size() ? part.size() + 1 : part.size());
  return part;
}

/// The first line of a text from outside, at most 200 bytes of it, for a message: '?' for each byte that is not
/// printable ASCII.
inline std::string ascii_line(std::string_view text) {
  std::string line(take_until(text, '\n').substr(0, 200));
  for (char& c : line)
    if (c < 0x20 || c >= 0x7F) c = '?';
  return line;
}

/// The lines of a text as one, with " | " between them, without empty ones and the spaces at their ends.
inline std::string one_line(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    std::string_view part = take_until(text, '\n');
    const auto end = part.find_last_not_of(" \t\r");
    if (end == std::string_view::npos) continue;
    line += (line.empty() ? "" : " | ");
    line += part.substr(0, end + 1);
  }
  return line;
}

}  // namespace hypertune::inline v0::detail
