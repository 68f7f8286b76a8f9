// What a person may copy to a shell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hypertune::command {

/// `text` as one word of a POSIX shell: in single quotes where a shell would read it otherwise.
inline std::string shell_word(std::string_view text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string_view::npos) return std::string(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

/// " --set key=value" for each, as a person gave them.
inline std::string set_words(const std::vector<std::string>& set) {
  std::string words;
  for (const auto& assignment : set) words += " --set " + shell_word(assignment);
  return words;
}

}  // namespace hypertune::command
