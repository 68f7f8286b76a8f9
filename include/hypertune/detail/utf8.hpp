// UTF-8: the only decoder, for displaying, storing and checking text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hypertune::inline v0::detail {

struct Utf8Character {
  std::size_t bytes = 1;
  char32_t code = U'\uFFFD';  ///< U+FFFD for a byte that is not UTF-8
  bool valid = false;         ///< false: no character begins there; skip one byte
};

/// The first character of a text that is not empty. Overlong forms, surrogates and code points beyond U+10FFFF are
/// invalid.
constexpr Utf8Character decode_utf8(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return {1, first, true};
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return {};
  char32_t code = first & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0U) != 0x80) return {};
    code = (code << 6U) | (next & 0x3FU);
  }
  const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  if (overlong || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return {};
  return {bytes, code, true};
}

/// Whether all of a text is UTF-8.
constexpr bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Character next = decode_utf8(text);
    if (!next.valid) return false;
    text.remove_prefix(next.bytes);
  }
  return true;
}

/// The position in `text` at or before `at` where a character begins, so that the text can be cut there.
constexpr std::size_t utf8_cut(std::string_view text, std::size_t at) {
  if (at >= text.size()) return text.size();
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) --at;
  return at;
}

/// At most `most` bytes of a text, whole characters, with "…" after them if there were more.
inline std::string utf8_shortened(std::string_view text, std::size_t most) {
  return std::string(text.substr(0, utf8_cut(text, most))) + (text.size() > most ? "…" : "");
}

/// Appends a code point of at most U+10FFFF.
inline void append_utf8(std::string& out, char32_t code) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  const int tail = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;  // bytes after the first
  put((tail == 1 ? 0xC0U : tail == 2 ? 0xE0U : 0xF0U) | code >> (6 * tail));
  for (int shift = 6 * (tail - 1); shift >= 0; shift -= 6) put(0x80U | (code >> shift & 0x3FU));
}

}  // namespace hypertune::inline v0::detail
