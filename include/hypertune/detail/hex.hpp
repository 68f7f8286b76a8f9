// Hexadecimal digits: of bytes, of ids, in URLs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::detail {

constexpr std::string_view hex_digits = "0123456789abcdef";

/// Two lower-case digits for each byte.
template <class Bytes>
std::string to_hex(const Bytes& bytes) {
  std::string text;
  text.reserve(2 * std::size(bytes));
  for (const auto each : bytes) {
    const auto byte = static_cast<unsigned char>(each);
    text += hex_digits[byte >> 4U];
    text += hex_digits[byte & 15U];
  }
  return text;
}

/// Whether the text is this many lower-case digits.
constexpr bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of(hex_digits) == std::string_view::npos;
}

/// The value of a digit in lower or upper case; -1 for another character.
constexpr int hex_value(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

/// The bytes that pairs of digits, in lower or upper case, stand for; nullopt for anything else.
inline std::optional<std::string> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (; !text.empty(); text.remove_prefix(2)) {
    const int high = hex_value(text[0]), low = hex_value(text[1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

}  // namespace hypertune::inline v0::detail
