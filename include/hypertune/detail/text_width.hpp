// The width of a text on a terminal, and cutting a text to a width.
#pragma once

#include <hypertune/detail/utf8.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::detail::terminal {

/// The columns that a character takes: 0 for combining marks, 2 for East Asian wide ones and emoji. (wcwidth(3) depends
/// on the locale, which a library must not set.)
inline std::size_t columns(char32_t code) {
  using Range = std::pair<char32_t, char32_t>;
  static constexpr Range none[] = {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x0610, 0x061A},
                                   {0x064B, 0x065F}, {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E}, {0x1AB0, 0x1AFF},
                                   {0x1DC0, 0x1DFF}, {0x200B, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x2064},
                                   {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}};
  static constexpr Range wide[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0x33FF},   {0x3400, 0x4DBF},
                                   {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
                                   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F},
                                   {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x1FA70, 0x1FAFF}, {0x20000, 0x3FFFD}};
  const auto within = [code](const auto& ranges) {
    const auto* after = std::upper_bound(std::begin(ranges), std::end(ranges), code,
                                         [](char32_t c, const Range& range) { return c < range.first; });
    return after != std::begin(ranges) && code <= std::prev(after)->second;
  };
  if (code < 0x300) return 1;
  return within(none) ? 0 : within(wide) ? 2 : 1;
}

/// `text` without anything that could move the cursor, change colours or hide text: control characters, marks that
/// change the direction of writing, and bytes that are not UTF-8 become '?'.
inline std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto [bytes, code, valid] = decode_utf8(text);
    const bool control = code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0xFFFD ||
                         (code >= 0x200E && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
                         (code >= 0x2066 && code <= 0x2069);
    if (control)
      out += '?';
    else
      out += text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return out;
}

/// The number of columns of a printable text.
inline std::size_t text_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const auto [bytes, code, valid] = decode_utf8(text);
    width += columns(code);
    text.remove_prefix(bytes);
  }
  return width;
}

/// A printable text, cut to at most `width` columns: what does not fit becomes "…".
inline std::string elide(std::string_view text, std::size_t width) {
  if (width == 0) return {};
  std::size_t used = 0, fits = 0;  // `fits`: bytes that leave one column for the "…"
  for (std::size_t at = 0; at < text.size();) {
    const auto [bytes, code, valid] = decode_utf8(text.substr(at));
    used += columns(code);
    at += bytes;
    if (used > width) return std::string(text.substr(0, fits)) + "…";
    if (used < width) fits = at;
  }
  return std::string(text);
}

/// Breaks a line at spaces into lines of at most `width` columns (0: no limit). Lines after the first begin with
/// `indent` spaces. A longer word is not broken.
inline std::string wrapped(std::string_view line, std::size_t width, std::size_t indent = 2) {
  if (width == 0 || text_width(line) <= width) return std::string(line);
  std::string out;
  std::size_t used = 0;
  while (!line.empty()) {
    const auto gap = std::min(line.find_first_not_of(' '), line.size());
    const auto end = std::min(line.find(' ', gap), line.size());
    const std::string_view word = line.substr(gap, end - gap);
    const std::size_t wide = text_width(word);
    if (!out.empty() && used + gap + wide > width && !word.empty()) {
      out += '\n' + std::string(indent, ' ');
      used = indent;
    } else if (!word.empty()) {
      out.append(gap, ' ');
      used += gap;
    }
    out += word;
    used += wide;
    line.remove_prefix(end);
  }
  return out;
}

}  // namespace hypertune::inline v0::detail::terminal
