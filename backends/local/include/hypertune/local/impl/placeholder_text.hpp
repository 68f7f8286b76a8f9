// PlaceholderText: definitions.
#pragma once

#include <hypertune/detail/nearest.hpp>
#include <hypertune/detail/shell_quote.hpp>
#include <hypertune/error.hpp>
#include <hypertune/local/placeholder_text.hpp>
#include <hypertune/record/detail/json_text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

namespace hypertune::inline v0::local {

namespace detail {

/// A format of numbers: [+][0][width][.precision] and a letter.
inline bool is_number_format(std::string_view text) {
  const auto skip = [&](std::string_view letters, std::size_t most) {
    std::size_t n = 0;
    while (n < most && n < text.size() && letters.find(text[n]) != std::string_view::npos) ++n;
    text.remove_prefix(n);
    return n;
  };
  constexpr std::string_view digits = "0123456789";
  skip("+", 1);
  skip(digits, 3);
  if (skip(".", 1) == 1 && skip(digits, 2) == 0) return false;
  return text.size() == 1 && std::string_view("eEfFgGd").find(text.front()) != std::string_view::npos;
}

/// The text between quotes, which are doubled within it.
inline std::string in_quotes(std::string_view text, char quote, std::string_view doubled) {
  std::string out(1, quote);
  for (const char c : text)
    if (c == quote)
      out += doubled;
    else
      out += c;
  return out += quote;
}

inline std::string python_text(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "True" : "False";
  if (const auto* text = std::get_if<std::string>(&value)) {
    std::string out;
    hypertune::detail::append_json(out, *text);  // is a string of Python, too
    return out;
  }
  return to_string(value);
}

inline std::string fortran_text(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? ".true." : ".false.";
  if (const auto* text = std::get_if<std::string>(&value)) return in_quotes(*text, '\'', "''");
  return to_string(value);
}

}  // namespace detail

void PlaceholderText::refuse(const std::string& message) { fail(Errc::usage, "{}", message); }

void PlaceholderText::add_literal(std::string_view text) {
  if (text.empty()) return;
  if (pieces_.empty() || !pieces_.back().literal) pieces_.emplace_back();
  pieces_.back().text += text;
}

PlaceholderText::PlaceholderText(std::string_view text, const std::vector<std::string>& names, std::string_view what,
                                 const PlaceholderStyle& style)
    : what_(what) {
  const auto is_at = [&](std::size_t i, const std::string& mark) { return text.substr(i, mark.size()) == mark; };
  const auto looks_like_one = [&](std::string_view inside) {
    if (std::find(names.begin(), names.end(), inside) != names.end()) return true;
    std::size_t n = 0;
    while (n < inside.size() && detail::is_name_letter(inside[n])) ++n;
    return n > 0 && (n == inside.size() || inside[n] == ':' || inside[n] == '?' || inside[n] == '|') &&
           inside.find('\n') == std::string_view::npos;
  };
  int line = 1;
  std::size_t begin = 0, i = 0;  // what lies between them is literal
  const auto where = [&](std::string_view source = {}) {
    return style.strict ? hypertune::detail::format("{} '{}'", what, text)
                        : hypertune::detail::format("{}:{}: {}", what, line, source);
  };
  while (i < text.size()) {
    if (text[i] == '\n') ++line;
    if (style.strict && ((is_at(i, style.open + style.open)) || is_at(i, style.close + style.close))) {
      add_literal(text.substr(begin, i - begin));
      const std::size_t size = is_at(i, style.open) ? style.open.size() : style.close.size();
      add_literal(text.substr(i, size));
      begin = i += 2 * size;
    } else if (is_at(i, style.open)) {
      const std::size_t first = i + style.open.size();
      const std::size_t end = text.find(style.close, first);
      if (end == std::string_view::npos) {
        if (style.strict) refuse(where() + " opens a brace and does not close it; write {{ for a brace");
        i = first;
        continue;
      }
      const auto inside = text.substr(first, end - first);
      if (!style.strict && !looks_like_one(inside)) {
        i = first;
        continue;
      }
      add_literal(text.substr(begin, i - begin));
      const auto source = text.substr(i, end + style.close.size() - i);
      pieces_.push_back(placeholder(inside, names, where(source), style));
      pieces_.back().source = source;
      begin = i = end + style.close.size();
    } else if (style.strict && is_at(i, style.close)) {
      refuse(where() + " closes a brace that it did not open; write }} for a brace");
    } else {
      ++i;
    }
  }
  add_literal(text.substr(begin));
}

PlaceholderText::Piece PlaceholderText::placeholder(std::string_view inside, const std::vector<std::string>& names,
                                                    const std::string& where, const PlaceholderStyle& style) const {
  const auto known = [&](std::string_view name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  Piece piece;
  piece.literal = false;
  const std::size_t mark = known(inside) ? std::string_view::npos : inside.find_first_of(":?|");
  piece.text = inside.substr(0, mark);
  if (!known(piece.text))
    refuse(hypertune::detail::format(
        "{} names '{}', which is no parameter of the space{}{}", where, piece.text,
        hypertune::detail::suggestion(piece.text, names),
        style.strict ? "; write {{ and }} for braces" : " ('placeholders' says how placeholders are marked)"));
  if (mark == std::string_view::npos) return piece;
  std::string_view rest = inside.substr(mark + 1);
  if (inside[mark] == '?') {
    piece.format = Format::choice;
    const std::size_t colon = rest.find(':');
    piece.yes = rest.substr(0, colon);
    if (colon != std::string_view::npos) piece.no = rest.substr(colon + 1);
    return piece;
  }
  if (inside[mark] == ':') {
    const std::size_t bar = rest.find('|');
    const std::string_view name = rest.substr(0, bar);
    constexpr std::pair<std::string_view, Format> formats[] = {
        {"json", Format::json}, {"fortran", Format::fortran}, {"python", Format::python}, {"shell", Format::shell}};
    const auto* found =
        std::find_if(std::begin(formats), std::end(formats), [&](const auto& f) { return f.first == name; });
    if (found != std::end(formats))
      piece.format = found->second;
    else if (detail::is_number_format(name))
      piece.format = Format::number;
    else
      refuse(hypertune::detail::format(
          "{} has no format '{}': there are json, fortran, python, shell, and those of numbers: .3e, 8.4f, 05d", where,
          name));
    piece.number = name;
    if (bar == std::string_view::npos) return piece;
    rest.remove_prefix(bar + 1);
  }
  piece.otherwise = rest;
  return piece;
}

void PlaceholderText::append(const Piece& piece, const Value& value, std::string& out) const {
  const auto misfit = [&](std::string_view needs) {
    fail(Errc::usage, "{}: {} needs {}, but {} is '{}'", what_, piece.source, needs, piece.text, to_string(value));
  };
  const auto* whole = std::get_if<std::int64_t>(&value);
  const auto* real = std::get_if<double>(&value);
  switch (piece.format) {
    case Format::plain: out += to_string(value); break;
    case Format::json: hypertune::detail::append_json(out, value); break;
    case Format::fortran: out += detail::fortran_text(value); break;
    case Format::python: out += detail::python_text(value); break;
    case Format::shell: out += hypertune::detail::shell_quote(to_string(value)); break;
    case Format::number: {
      const std::string format = hypertune::detail::format("{{:{}}}", piece.number);
      if (piece.number.back() == 'd') {
        if (real != nullptr && std::trunc(*real) == *real && std::fabs(*real) < 0x1p63)
          out += fmt::format(fmt::runtime(format), static_cast<std::int64_t>(*real));
        else if (whole != nullptr)
          out += fmt::format(fmt::runtime(format), *whole);
        else
          misfit("a whole number");
      } else if (real != nullptr || whole != nullptr) {
        out += fmt::format(fmt::runtime(format), real != nullptr ? *real : static_cast<double>(*whole));
      } else {
        misfit("a number");
      }
      break;
    }
    case Format::choice:
      if (const auto* flag = std::get_if<bool>(&value))
        out += *flag ? piece.yes : piece.no;
      else if (real != nullptr || whole != nullptr)
        out += (real != nullptr ? *real != 0 : *whole != 0) ? piece.yes : piece.no;
      else
        misfit("true, false or a number");
      break;
  }
}

PlaceholderText::Result PlaceholderText::operator()(const Values& values) const {
  Result result;
  for (const auto& piece : pieces_) {
    if (piece.literal) {
      result.text += piece.text;
    } else if (const auto value = values.find(piece.text); value != values.end()) {
      append(piece, value->second, result.text);
    } else if (piece.otherwise) {
      result.text += *piece.otherwise;
    } else if (piece.format != Format::choice) {
      result.inactive = true;
    }
  }
  return result;
}

std::string PlaceholderText::without_inactive_lines(const Values& values) const {
  std::string out;
  std::size_t line = 0;  // where the present line begins in `out`
  bool leave_out = false;
  const auto end_line = [&] {
    if (leave_out) out.resize(line);
    leave_out = false;
    line = out.size();
  };
  for (const auto& piece : pieces_) {
    if (piece.literal) {
      std::string_view rest = piece.text;
      for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
        out += rest.substr(0, end + 1);
        rest.remove_prefix(end + 1);
        end_line();
      }
      out += rest;
    } else if (const auto value = values.find(piece.text); value != values.end()) {
      append(piece, value->second, out);
    } else if (piece.otherwise) {
      out += *piece.otherwise;
    } else if (piece.format != Format::choice) {
      leave_out = true;
    }
  }
  end_line();
  return out;
}

bool PlaceholderText::only_switches() const {
  return !pieces_.empty() && std::all_of(pieces_.begin(), pieces_.end(), [](const Piece& piece) {
    return !piece.literal && piece.format == Format::choice;
  });
}

bool PlaceholderText::has_placeholders() const {
  return std::any_of(pieces_.begin(), pieces_.end(), [](const Piece& piece) { return !piece.literal; });
}

std::string PlaceholderText::single_name() const {
  if (pieces_.size() != 1) return "";
  const Piece& piece = pieces_.front();
  return piece.literal || piece.otherwise || piece.format == Format::choice ? "" : piece.text;
}

std::vector<std::pair<std::string, bool>> PlaceholderText::names() const {
  std::vector<std::pair<std::string, bool>> names;
  for (const auto& piece : pieces_)
    if (!piece.literal) names.emplace_back(piece.text, piece.format == Format::choice);
  return names;
}

std::string PlaceholderText::literal() const {
  std::string text;
  for (const auto& piece : pieces_)
    if (piece.literal) text += piece.text;
  return text;
}

}  // namespace hypertune::inline v0::local
