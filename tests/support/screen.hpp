// A terminal's screen, as far as the display uses one: anything it does not know fails the test.
#pragma once

#include "support/test.hpp"

#include <hypertune/detail/text_width.hpp>
#include <hypertune/detail/utf8.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

class Screen {
 public:
  Screen(std::size_t width, std::size_t height) : width_(width), rows_(height, std::string()) {}

  /// Takes in what a program wrote. A sequence that is cut is kept until the rest comes.
  void feed(std::string_view bytes) {
    pending_ += bytes;
    std::size_t at = 0;
    while (at < pending_.size()) {
      const auto used = take(std::string_view(pending_).substr(at));
      if (used == 0) break;
      at += used;
    }
    pending_.erase(0, at);
  }

  /// Lines from the top, without empty ones at the end.
  std::vector<std::string> lines() const {
    auto lines = rows_;
    while (!lines.empty() && lines.back().empty()) lines.pop_back();
    return lines;
  }
  bool shows(std::string_view text) const {
    for (const auto& row : rows_)
      if (row.find(text) != std::string::npos) return true;
    return false;
  }
  bool cursor_visible = true, wraps = true, colored = false, wrapped = false;
  std::size_t scrolled = 0;
  std::size_t row() const { return row_; }
  std::size_t column() const { return column_; }

 private:
  std::size_t take(std::string_view text) {
    const char c = text.front();
    if (c == '\r') return column_ = 0, 1;
    if (c == '\n') return line_feed(), 1;
    if (c == '\x1b') return escape(text);
    if (static_cast<unsigned char>(c) < 0x20) FAIL("a control character: " << static_cast<int>(c));
    const auto character = hypertune::detail::decode_utf8(text);
    if (character.code == 0xFFFD && text.size() < 4) return 0;
    const auto columns = hypertune::detail::terminal::columns(character.code);
    if (column_ + columns > width_) {
      wrapped = true;
      return character.bytes;
    }
    // Only ever at the end of what stands there, or over the whole line (which draw() has cleared).
    auto& row = rows_[row_];
    if (column_ == 0) row.clear();
    row += text.substr(0, character.bytes);
    column_ += columns;
    return character.bytes;
  }

  std::size_t escape(std::string_view text) {
    const auto end = text.find_first_of("ABCDEFGHJKmhl", 2);
    if (end == std::string_view::npos) return 0;
    const std::string sequence(text.substr(1, end));
    if (sequence == "[?25l" || sequence == "[?25h")
      cursor_visible = sequence.back() == 'h';
    else if (sequence == "[?7l" || sequence == "[?7h")
      wraps = sequence.back() == 'h';
    else if (sequence == "[K")
      erase_to_end();
    else if (sequence == "[J")
      for (std::size_t r = row_; r < rows_.size(); ++r) rows_[r].clear();
    else if (sequence.back() == 'A')
      row_ -= std::min(row_, static_cast<std::size_t>(std::stoul(sequence.substr(1))));
    else if (sequence.back() == 'm')
      colored = true;
    else
      FAIL("an escape sequence the test does not know: ESC" << sequence);
    return end + 1;
  }

  // From the cursor on. Behind the last column it stands on that.
  void erase_to_end() {
    auto& row = rows_[row_];
    if (column_ == 0) row.clear();
    if (column_ < width_ || row.empty()) return;
    while (!row.empty() && (static_cast<unsigned char>(row.back()) & 0xC0U) == 0x80) row.pop_back();
    row.pop_back();
  }

  void line_feed() {
    if (++row_ < rows_.size()) return;
    rows_.erase(rows_.begin());
    rows_.emplace_back();
    --row_;
    ++scrolled;
  }

  std::size_t width_, row_ = 0, column_ = 0;
  std::vector<std::string> rows_;
  std::string pending_;
};
