// PlaceholderText: a text in which placeholders stand for values of a trial.
#pragma once

#include <hypertune/space/params.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::local {

namespace detail {

/// Of what names of parameters usually consist.
inline bool is_name_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '-' || c == '/';
}

}  // namespace detail

/// How placeholders of a text are marked.
struct PlaceholderStyle {
  std::string open = "{", close = "}";
  /// Every mark belongs to a placeholder, or is doubled to stand for itself: `{{`. Otherwise only what looks like a
  /// placeholder is one (marks round a name, in one line), and other marks stay as they are.
  bool strict = true;
};

/// With the marks { and }, a placeholder is one of
///
/// | placeholder    | stands for |
/// |---|---|
/// | `{x}`          | the value of x |
/// | `{x:json}`     | … as JSON writes it: texts are quoted. Also `fortran` (`.true.`, 'text'), `python` (True, 'text'), `shell` (one word), and formats of numbers such as `.3e`, `8.4f`, `05d` |
/// | `{x|text}`, `{x:json|text}` | … and the text where x is not active |
/// | `{x?yes}`, `{x?yes:no}` | one of two texts, the second of which may be left out: the first if x is true or a number other than 0; nothing if x is not active |
///
/// where x is a name. The texts contain no mark; `yes` contains no colon.
class PlaceholderText {
 public:
  using Values = std::map<std::string, Value, std::less<>>;

  /// `names`: what placeholders may name. `what` begins the messages: "the command's argument". Throws an Error of kind
  /// `usage` for a placeholder that names anything else or is malformed; in a text that is not strict the message says
  /// in which line.
  PlaceholderText(std::string_view text, const std::vector<std::string>& names, std::string_view what,
                  const PlaceholderStyle& style = {});

  struct Result {
    std::string text;
    bool inactive = false;  ///< it names something that has no value, and says no text for that
  };
  /// What has no value becomes empty. Throws an Error of kind `usage` if a value does not fit its placeholder.
  Result operator()(const Values& values) const;

  /// The same, but lines that name something without a value are left out.
  std::string without_inactive_lines(const Values& values) const;

  bool only_switches() const;  ///< it consists of placeholders `{x?…}` alone
  bool has_placeholders() const;
  /// The name, if it consists of one placeholder that gives a value and no text in its place; else empty.
  std::string single_name() const;
  /// What the placeholders name, and whether it is by `{x?…}`.
  std::vector<std::pair<std::string, bool>> names() const;
  /// The text outside placeholders.
  std::string literal() const;

 private:
  enum class Format : std::uint8_t { plain, json, fortran, python, shell, number, choice };
  struct Piece {
    std::string text;  // a literal text, or the name
    bool literal = true;
    Format format = Format::plain;
    std::string number;                    // of Format::number: printf's conversion
    std::optional<std::string> otherwise;  // if there is no value
    std::string yes, no;                   // of Format::choice
    std::string source;                    // the placeholder as it is written
  };

  [[noreturn]] static void refuse(const std::string& message);
  Piece placeholder(std::string_view inside, const std::vector<std::string>& names, const std::string& where,
                    const PlaceholderStyle& style) const;
  void add_literal(std::string_view text);
  void append(const Piece& piece, const Value& value, std::string& out) const;

  std::vector<Piece> pieces_;
  std::string what_;
};

}  // namespace hypertune::inline v0::local
