// Splits commands into words, and formats them for copying into a shell.
#pragma once

#include <hypertune/detail/shell_quote.hpp>
#include <hypertune/detail/text.hpp>
#include <hypertune/detail/text_width.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::command {

/// The parts between spaces.
inline std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty())
    if (const auto word = detail::take_until(text, ' '); !word.empty()) words.emplace_back(word);
  return words;
}

/// A command as a user would type it.
inline std::string typed(const std::vector<std::string>& command) {
  std::string text;
  for (const auto& word : command) text += (text.empty() ? "" : " ") + detail::shell_quote(word);
  return text;
}

/// `text`, followed by a command with these parts. If the terminal is too narrow for one line, the command is put on
/// lines of its own, which a shell joins.
inline std::string with_command(const std::string& text, const std::vector<std::string>& parts, std::size_t width) {
  using detail::terminal::text_width;
  std::string all = text;
  for (const auto& part : parts) all += ' ' + part;
  if (width == 0 || text_width(all) <= width) return all;
  std::string out = detail::terminal::wrapped(text, width) + '\n', line = "  ";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    constexpr std::size_t rest = 2;  // " \"
    if (i > 0 && text_width(line) + 1 + text_width(parts[i]) + rest > width) {
      out += line + " \\\n";
      line = "    " + parts[i];
    } else {
      line += (i > 0 ? " " : "") + parts[i];
    }
  }
  return out + line;
}

}  // namespace hypertune::inline v0::command
