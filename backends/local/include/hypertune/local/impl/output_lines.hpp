// OutputLines: definitions.
#pragma once

#include <hypertune/local/output_lines.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

namespace hypertune::inline v0::local {

namespace detail {

/// What updates of one bar have in common: their letters. Numbers are alike, whatever their length, and so are the signs
/// and the letter of which a bar is drawn. An update may have more than the one before it.
inline std::string kind_of_update(std::string_view text) {
  constexpr std::size_t enough = 4096;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  text = text.substr(0, enough);
  std::string kind;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = digit(text[i]) ? '0' : text[i];
    const bool exponent = (c == 'e' || c == 'E') && i > 0 && digit(text[i - 1]) && i + 1 < text.size() &&
                          (digit(text[i + 1]) || text[i + 1] == '-' || text[i + 1] == '+');
    if (!exponent && (c == '0' || letter(c)) && (kind.empty() || kind.back() != c)) kind += c;
  }
  return kind;
}

inline bool is_blank(std::string_view text) { return text.find_first_not_of(" \t") == std::string_view::npos; }

/// Whether a line may be a report in JSON, of which each counts.
inline bool may_be_object(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  return begin != std::string_view::npos && text[begin] == '{';
}

}  // namespace detail

void OutputLines::add(std::string_view more, double now, const Take& take) {
  now_ = now;
  while (!more.empty()) {
    if (state_ != State::text) {
      const char byte = more.front();
      // A sequence is within a line: its end ends one that is broken.
      if (byte != '\n') more.remove_prefix(1);
      sequence(byte, take);
      continue;
    }
    const auto special = std::min(more.find_first_of("\n\r\b\x1b"), more.size());
    if (special > 0) put(more.substr(0, special), take);
    more.remove_prefix(special);
    if (more.empty()) break;
    const char byte = more.front();
    more.remove_prefix(1);
    switch (byte) {
      case '\n': new_line(take); break;
      case '\r': returned_ = true; break;
      case '\b': ++back_; break;
      default: state_ = State::escape; sequence_.clear();
    }
  }
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    if (!row.held || now_ - row.shown_at < patience) continue;
    row.shown_at = now_;
    pass({.text = *row.held, .stays = false, .update = true, .passing = true}, i, take);
  }
}

void OutputLines::end(const Take& take) {
  pass_rows(rows_.size(), take);
  state_ = State::text;
}

void OutputLines::put(std::string_view plain, const Take& take) {
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80; };  // UTF-8
  from_.reset();
  std::string& text = rows_[at_].text;
  if (back_ > 0 && !returned_) {
    std::size_t kept = text.size();
    for (; back_ > 0 && kept > 0; --back_)  // takes away whole characters
      do --kept;
      while (kept > 0 && continues(text[kept]));
    returned_ = kept == 0;
    if (!returned_) text.resize(kept);
    back_ = 0;
  }
  if (returned_) leave(at_, take);
  while (!plain.empty()) {
    const auto part = plain.substr(0, most_ + 1 - text.size());
    text += part;
    plain.remove_prefix(part.size());
    if (text.size() <= most_) return;
    if (rows_[at_].held) pass_held(at_, true, take);
    const bool first = !std::exchange(rows_[at_].cut, true);
    pass({.text = std::exchange(text, {}), .whole = false, .first = first}, at_, take);
  }
}

void OutputLines::leave(std::size_t index, const Take& take) {
  if (index == at_) {
    returned_ = false;
    back_ = 0;
  }
  Row& row = rows_[index];
  if (std::exchange(row.cut, false)) {
    pass({.text = std::exchange(row.text, {}) + '\n', .whole = false, .first = false, .stays = false}, index, take);
    return;
  }
  std::string text = std::exchange(row.text, {});
  if (detail::is_blank(text)) return;  // it was only to wipe out what was there
  std::string kind = detail::kind_of_update(text);
  const bool same = row.held && kind.starts_with(row.held_kind) && !detail::may_be_object(text);
  if (!row.held)
    row.shown_at = now_;
  else if (!same || every_update_)
    pass_held(index, !same, take);
  row.held = std::move(text);
  row.held_kind = std::move(kind);
  row.held_update = same;
}

void OutputLines::new_line(const Take& take) {
  from_.reset();
  rows_[at_].ended = true;
  if (line() < below_) {
    down();
    if (rows_.size() > height_ + 1) pass_rows(1, take);
  } else {
    pass_rows(rows_.size(), take);
  }
  returned_ = !rows_[at_].text.empty();
  back_ = 0;
}

void OutputLines::up(std::uint64_t lines) {
  if (!from_) from_ = line();
  below_ = std::max(below_, line() + 1);
  for (; lines > at_ && top_ > 0 && rows_.size() < max_rows; --top_, ++at_) {
    rows_.emplace_front();
    rows_.front().passed = true;
  }
  at_ -= std::min<std::uint64_t>(lines, at_);
  height_ = std::max(height_, *from_ - line());
  returned_ = true;
  back_ = 0;
}

void OutputLines::down() {
  if (++at_ == rows_.size()) rows_.emplace_back();
}

void OutputLines::pass_rows(std::size_t count, const Take& take) {
  for (std::size_t i = 0; i < count; ++i) end_row(i, take);
  rows_.erase(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(count));
  top_ += count;
  at_ -= std::min(count, at_);
  if (rows_.empty()) rows_.emplace_back();
}

void OutputLines::end_row(std::size_t index, const Take& take) {
  Row& row = rows_[index];
  const bool cut = std::exchange(row.cut, false);
  std::string text = std::exchange(row.text, {});
  if (text.empty() && !cut && !row.held && (!row.ended || row.passed)) return;
  bool update = false;
  if (row.held && !cut && detail::is_blank(text)) {
    pass_held(index, true, take);
    return;
  }
  if (row.held) {
    update = !cut && !detail::may_be_object(text) && detail::kind_of_update(text).starts_with(row.held_kind);
    if (!update || every_update_)
      pass_held(index, !update, take);
    else
      row.held.reset();
  }
  if (cut)
    pass({.text = text + '\n', .whole = false, .first = false}, index, take);
  else
    pass({.text = std::move(text), .update = update}, index, take);
}

void OutputLines::pass(OutputLine line, std::size_t index, const Take& take) {
  line.row = top_ + index;
  line.drawn = line.row < below_;
  take(std::move(line));
}

void OutputLines::pass_held(std::size_t index, bool shown, const Take& take) {
  Row& row = rows_[index];
  std::string text = std::move(*row.held);
  row.held.reset();
  pass({.text = std::move(text), .stays = false, .update = row.held_update, .shown = shown}, index, take);
}

// ECMA-48: ESC [ parameters final; ESC ] or another letter, a text, BEL or ESC \; ESC intermediates final.
void OutputLines::sequence(char byte, const Take& take) {
  constexpr std::size_t most = 4096;  // of a sequence: what is longer is none
  const auto in = [&](char first, char last) { return byte >= first && byte <= last; };
  sequence_ += byte;
  if (byte == '\n' || sequence_.size() > most) {
    state_ = State::text;
    return;
  }
  switch (state_) {
    case State::escape:
      if (byte == '[')
        state_ = State::control;
      else if (std::string_view("]PX^_").find(byte) != std::string_view::npos)
        state_ = State::command;
      else if (in(' ', '/'))
        state_ = State::charset;
      else
        state_ = State::text;
      if (byte == 'M') up(1);
      sequence_.clear();
      break;
    case State::charset:
      if (!in(' ', '/')) state_ = State::text;
      break;
    case State::control:
      if (in(' ', '?')) break;
      state_ = State::text;
      sequence_.pop_back();
      if (in('@', '~'))
        control_sequence(byte, take);
      else if (byte == '\x1b')
        state_ = State::escape;
      else if (byte == '\r')
        returned_ = true;
      break;
    case State::command:
      if (byte == '\a') state_ = State::text;
      if (byte == '\x1b') state_ = State::command_escape;
      break;
    default: state_ = byte == '\\' ? State::text : State::command;
  }
}

void OutputLines::control_sequence(char last, const Take& take) {
  constexpr std::size_t widest = 1000;
  std::size_t number = 0;
  std::from_chars(sequence_.data(), sequence_.data() + sequence_.size(), number);
  sequence_.clear();
  switch (last) {
    case 'G':  // to a column
    case '`':
      if (number <= 1) returned_ = true;
      break;
    case 'D': back_ += std::clamp<std::size_t>(number, 1, widest); break;  // to the left
    case 'C':                                                              // to the right
      put(" ", take);
      break;
    case 'A':  // up
    case 'F': up(std::clamp<std::size_t>(number, 1, widest)); break;
    case 'B':  // down
    case 'E':
      if (line() + 1 >= below_) leave(at_, take);
      for (number = std::clamp<std::size_t>(number, 1, widest); number > 0 && line() + 1 < below_; --number) down();
      returned_ = true;
      break;
    case 'H':  // to a line of the screen
    case 'f':
    case 'd':
      leave(at_, take);
      if (number > 1) break;
      if (!home_) home_ = line();
      if (*home_ < line()) up(line() - *home_);
      break;
    case 'J':  // erases the screen, from the cursor on
      for (std::size_t i = at_; i < rows_.size(); ++i) leave(i, take);
      break;
    case 'K':  // erases what is behind the cursor (0), before it, or the line (2)
      if (returned_ || number == 2) leave(at_, take);
      break;
    default: break;  // colours, modes, …
  }
}

}  // namespace hypertune::inline v0::local
