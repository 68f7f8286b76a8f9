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

HYPERTUNE_INLINE void OutputLines::add(std::string_view more, double now, const Take& take) {
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
  if (held_ && now_ - shown_at_ >= patience) {
    shown_at_ = now_;
    pass({.text = *held_, .stays = false, .update = true, .passing = true}, take);
  }
}

HYPERTUNE_INLINE void OutputLines::end(const Take& take) {
  if (!text_.empty() || cut_ || held_) new_line(take);
  state_ = State::text;
}

HYPERTUNE_INLINE void OutputLines::put(std::string_view plain, const Take& take) {
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80; };  // UTF-8
  if (back_ > 0 && !returned_) {
    std::size_t kept = text_.size();
    for (; back_ > 0 && kept > 0; --back_)  // takes away whole characters
      do --kept;
      while (kept > 0 && continues(text_[kept]));
    returned_ = kept == 0;
    if (!returned_) text_.resize(kept);
    back_ = 0;
  }
  if (returned_) leave(take);
  while (!plain.empty()) {
    const auto part = plain.substr(0, most_ + 1 - text_.size());
    text_ += part;
    plain.remove_prefix(part.size());
    if (text_.size() <= most_) return;
    if (held_) pass_held(true, take);
    pass({.text = std::exchange(text_, {}), .whole = false, .first = !std::exchange(cut_, true)}, take);
  }
}

HYPERTUNE_INLINE void OutputLines::leave(const Take& take) {
  returned_ = false;
  back_ = 0;
  if (std::exchange(cut_, false)) {
    pass({.text = std::exchange(text_, {}) + '\n', .whole = false, .first = false, .stays = false}, take);
    return;
  }
  std::string text = std::exchange(text_, {});
  if (detail::is_blank(text)) return;  // it was only to wipe out what was there
  std::string kind = detail::kind_of_update(text);
  const bool same = held_ && kind.starts_with(held_kind_) && !detail::may_be_object(text);
  if (!held_)
    shown_at_ = now_;
  else if (!same || every_update_)
    pass_held(!same, take);
  held_ = std::move(text);
  held_kind_ = std::move(kind);
  held_update_ = same;
}

HYPERTUNE_INLINE void OutputLines::new_line(const Take& take) {
  returned_ = false;
  back_ = 0;
  const bool cut = std::exchange(cut_, false);
  std::string text = std::exchange(text_, {});
  bool update = false;
  if (held_ && !cut && detail::is_blank(text)) {
    pass_held(true, take);
    text.clear();
  } else {
    if (held_) {
      update = !cut && !detail::may_be_object(text) && detail::kind_of_update(text).starts_with(held_kind_);
      if (!update || every_update_)
        pass_held(!update, take);
      else
        held_.reset();
    }
    if (cut)
      pass({.text = text + '\n', .whole = false, .first = false}, take);
    else
      pass({.text = std::move(text), .update = update}, take);
  }
  ++row_;
}

HYPERTUNE_INLINE void OutputLines::pass(OutputLine line, const Take& take) {
  line.row = row_;
  take(std::move(line));
}

HYPERTUNE_INLINE void OutputLines::pass_held(bool shown, const Take& take) {
  pass({.text = std::move(*held_), .stays = false, .update = held_update_, .shown = shown}, take);
  held_.reset();
}

// ECMA-48: ESC [ parameters final; ESC ] or another letter, a text, BEL or ESC \; ESC intermediates final.
HYPERTUNE_INLINE void OutputLines::sequence(char byte, const Take& take) {
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

HYPERTUNE_INLINE void OutputLines::control_sequence(char last, const Take& take) {
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
    case 'A':  // to another line
    case 'B':
    case 'E':
    case 'F':
    case 'H':
    case 'J':  // erases the screen
    case 'd':
    case 'f': leave(take); break;
    case 'K':  // erases what is behind the cursor (0), before it, or the line (2)
      if (returned_ || number == 2) leave(take);
      break;
    default: break;  // colours, modes, …
  }
}

}  // namespace hypertune::inline v0::local
