// shell_quote: quotes a word for a shell.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace hypertune::inline v0::detail {

/// Characters without a special meaning within a word, for any shell, POSIX or other.
constexpr bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-./:@%+,").find(c) != std::string_view::npos;
}

/// Quotes one word for a POSIX shell: 'it'\''s'. A word that needs no quotes gets none.
inline std::string shell_quote(std::string_view word) {
  const auto plain = [&](const char& c) { return is_plain(c) || (c == '=' && &c != word.data()); };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return std::string(word);
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

}  // namespace hypertune::inline v0::detail
