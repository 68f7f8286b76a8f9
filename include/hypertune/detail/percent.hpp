// Percent-encoding of URLs (RFC 3986, section 2).
#pragma once

#include <hypertune/detail/hex.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::detail {

/// Encodes all characters but letters, digits and those in `kept`. The default is that of RFC 3986.
inline std::string percent_encoded(std::string_view text, std::string_view kept = "-._~") {
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (plain || kept.find(c) != std::string_view::npos) {
      encoded += c;
      continue;
    }
    constexpr std::string_view digits = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += digits[byte >> 4U];
    encoded += digits[byte & 15U];
  }
  return encoded;
}

/// nullopt: a '%' is not followed by two hexadecimal digits.
inline std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (; !text.empty(); text.remove_prefix(1)) {
    if (text.front() != '%') {
      decoded += text.front();
      continue;
    }
    const auto byte = text.size() < 3 ? std::nullopt : from_hex(text.substr(1, 2));
    if (!byte) return std::nullopt;
    decoded += *byte;
    text.remove_prefix(2);
  }
  return decoded;
}

}  // namespace hypertune::inline v0::detail
