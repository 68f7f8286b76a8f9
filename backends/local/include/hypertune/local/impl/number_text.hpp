// Numbers as people print them: definitions.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/utf8.hpp>
#include <hypertune/local/number_text.hpp>
#include <hypertune/local/report_line.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

namespace hypertune::inline v0::local {

namespace detail {

std::optional<double> plain_number(std::string_view token) {
  if (token.empty() || token.find_first_not_of("0123456789+-.eE") != std::string_view::npos) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (end != token.data() + token.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {  // overflow or underflow
    const auto exponent = token.find_first_of("eE");
    const bool tiny = exponent != std::string_view::npos && token.substr(exponent).find('-') != std::string_view::npos;
    value = tiny ? 0 : std::numeric_limits<double>::infinity();
    return token.front() == '-' ? -value : value;
  }
  if (error != std::errc()) return std::nullopt;
  return value;
}

GroupSurroundings surroundings_of_group(std::string_view pattern) {
  std::size_t open = std::string_view::npos, depth = 0;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\')
      ++i;
    else if (in_class)
      in_class = c != ']';
    else if (c == '[')
      in_class = true;
    else if (open == std::string_view::npos && c == '(' && pattern.substr(i + 1, 1) != "?")
      open = i;
    else if (open != std::string_view::npos && c == '(')
      ++depth;
    else if (open != std::string_view::npos && c == ')' && depth-- == 0)
      return {std::string(pattern.substr(0, open)), std::string(pattern.substr(i + 1))};
  }
  return {};
}

/// Reads a number and what belongs to it, from a place in a line on.
class NumberReader {
 public:
  NumberReader(std::string_view line, std::size_t limit) : line_(line.substr(0, limit)) {}

  struct Number {
    std::size_t end = 0;
    double value = 0;
    bool whole = true;           // has neither a fraction nor an exponent
    std::string_view ambiguous;  // it is this text, with one comma
  };

  /// The number that begins at `at`, as long as it can be. `any_sign`: a sign there is one even behind a letter.
  std::optional<Number> number(std::size_t at, bool any_sign = false) const {
    std::size_t i = at;
    std::string plain;
    if (at_any(i, "+-")) {
      if (!any_sign && at > 0 && (alnum(at - 1) || at_any(at - 1, ".)%+-"))) return std::nullopt;
      if (line_[i] == '-') plain += '-';
      ++i;
    }
    Number number;
    const std::size_t first = i;
    while (digit(i)) plain += line_[i++];
    const std::size_t digits = i - first;
    if (digits == 1 && line_.substr(first, 3) == "1.#") return special(first + 3, plain.starts_with('-'));
    const char separator = digits >= 1 && digits <= 3 && line_[first] != '0' && at_any(i, ",_'") ? line_[i] : '\0';
    const std::size_t groups_begin = i;
    while (separator != '\0' && at_char(i, separator) && digit(i + 1) && digit(i + 2) && digit(i + 3) &&
           !digit(i + 4)) {
      plain += line_.substr(i + 1, 3);
      i += 4;
    }
    const bool one_comma = separator == ',' && i == groups_begin + 4;
    std::size_t decimals = 0;
    const bool point = at_char(i, '.') && (digit(i + 1) || (digits > 0 && (exponent(i + 1) > i + 1)));
    if (point) {
      number.whole = false;
      plain += '.';
      for (++i; digit(i); ++i, ++decimals) plain += line_[i];
    }
    if (digits + decimals == 0) return std::nullopt;
    if (one_comma && !point) number.ambiguous = line_.substr(first, i - first);
    if (const std::size_t after = exponent(i); after > i && (point || at_any(i, "eE"))) {
      number.whole = false;
      plain += 'e';
      plain += line_.substr(i + 1, after - i - 1);
      i = after;
    } else if (decimals >= 3 && at_any(i, "+-") && digit(i + 1) && digit(i + 2) && digit(i + 3) && !digit(i + 4) &&
               !at_char(i + 4, '.')) {  // Fortran has no room for the letter before three digits
      plain += 'e';
      plain += line_.substr(i, 4);
      i += 4;
    }
    if (const auto plus = plain.find("e+"); plus != std::string::npos) plain.erase(plus + 1, 1);
    const auto value = plain_number(plain);
    if (!value) return std::nullopt;
    number.value = *value;
    number.end = i;
    return number;
  }

  bool digit(std::size_t i) const { return i < line_.size() && line_[i] >= '0' && line_[i] <= '9'; }
  bool letter(std::size_t i) const {
    return i < line_.size() && ((line_[i] >= 'a' && line_[i] <= 'z') || (line_[i] >= 'A' && line_[i] <= 'Z'));
  }
  bool alnum(std::size_t i) const { return digit(i) || letter(i); }
  bool at_char(std::size_t i, char c) const { return i < line_.size() && line_[i] == c; }
  bool at_any(std::size_t i, std::string_view some) const {
    return i < line_.size() && some.find(line_[i]) != std::string_view::npos;
  }
  std::string_view line() const { return line_; }

  /// The letters at `at`, or a percent sign. The sign of micro is `u`.
  std::string word(std::size_t at, std::size_t& end) const {
    std::string text;
    end = at;
    if (at_char(at, '%')) {
      ++end;
      return "%";
    }
    for (;;) {
      if (letter(end)) {
        text += line_[end++];
      } else if (line_.substr(end, 2) == "\xc2\xb5" || line_.substr(end, 2) == "\xce\xbc") {
        text += 'u';
        end += 2;
      } else {
        return text;
      }
    }
  }

  /// Where a clock that begins with a whole number of `end` ends (12:34, 1:02:03.5), and its seconds. `parts`: how many
  /// numbers it has; 1 if it is none.
  int clock(std::size_t& end, double& seconds) const {
    int parts = 1;
    while (parts < 3 && at_char(end, ':') && digit(end + 1) && digit(end + 2) && !digit(end + 3) &&
           line_[end + 1] < '6') {
      seconds = seconds * 60 + (line_[end + 1] - '0') * 10 + (line_[end + 2] - '0');
      end += 3;
      ++parts;
    }
    if (parts > 1 && at_char(end, '.') && digit(end + 1)) {
      const std::size_t from = end++;
      while (digit(end)) ++end;
      seconds += plain_number("0" + std::string(line_.substr(from, end - from))).value_or(0);
    }
    return parts;
  }

  /// The sum of 3m12s or 1h 2min, which begins with `number`. `parts`: how many; 0 if no unit of time follows.
  int duration(const Number& number, std::size_t& end, double& seconds) const {
    int parts = 0;
    double last = std::numeric_limits<double>::infinity();
    std::optional<Number> next = number;
    seconds = 0;
    while (next) {
      std::size_t word_end = 0, at = next->end;
      if (at_char(at, ' ') && letter(at + 1)) ++at;
      const double factor = time_unit(word(at, word_end));
      if (factor <= 0 || factor >= last) break;  // from the largest to the smallest
      seconds += next->value * factor;
      last = factor;
      end = word_end;
      ++parts;
      at = end + (at_char(end, ' ') ? 1U : 0U);
      next = digit(at) ? this->number(at) : std::nullopt;
    }
    return parts;
  }

  static double time_unit(std::string_view word) {
    static constexpr std::pair<std::string_view, double> units[] = {{"ns", 1e-9},
                                                                    {"us", 1e-6},
                                                                    {"ms", 1e-3},
                                                                    {"msec", 1e-3},
                                                                    {"usec", 1e-6},
                                                                    {"nsec", 1e-9},
                                                                    {"s", 1},
                                                                    {"sec", 1},
                                                                    {"secs", 1},
                                                                    {"second", 1},
                                                                    {"seconds", 1},
                                                                    {"min", 60},
                                                                    {"m", 60},
                                                                    {"mins", 60},
                                                                    {"minute", 60},
                                                                    {"minutes", 60},
                                                                    {"h", 3600},
                                                                    {"hr", 3600},
                                                                    {"hrs", 3600},
                                                                    {"hour", 3600},
                                                                    {"hours", 3600},
                                                                    {"d", 86400},
                                                                    {"day", 86400},
                                                                    {"days", 86400},
                                                                    {"millisecond", 1e-3},
                                                                    {"milliseconds", 1e-3},
                                                                    {"microsecond", 1e-6},
                                                                    {"microseconds", 1e-6},
                                                                    {"nanosecond", 1e-9},
                                                                    {"nanoseconds", 1e-9}};
    for (const auto& [name, factor] : units)
      if (name == word) return factor;
    return 0;
  }

  /// The factor of k, M, G, T or P, of Ki … with `binary` set: 1024.
  static double prefix(char letter, bool binary) {
    constexpr std::string_view letters = "kMGTP";
    const auto at = letters.find(letter == 'K' ? 'k' : letter);
    return at == std::string_view::npos ? 0 : std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(at + 1));
  }

 private:
  // The end of the exponent at `i`, or `i`.
  std::size_t exponent(std::size_t i) const {
    if (!at_any(i, "eEdD")) return i;
    std::size_t end = i + 1;
    if (at_any(end, "+-")) ++end;
    if (!digit(end)) return i;
    while (digit(end)) ++end;
    return end;
  }

  // 1.#INF, 1.#QNAN, 1.#IND00, as older libraries of Microsoft print them.
  std::optional<Number> special(std::size_t at, bool negative) const {
    Number number;
    const std::string name = word(at, number.end);
    while (digit(number.end)) ++number.end;
    number.whole = false;
    if (name == "INF" || name == "J")
      number.value = negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    else if (name == "IND" || name == "QNAN" || name == "SNAN" || name == "NAN" || name == "QO" || name == "R")
      number.value = std::numeric_limits<double>::quiet_NaN();
    else
      return std::nullopt;
    return number;
  }

  std::string_view line_;
};

/// Judges what stands behind a number, where no unit is named. Returns the reason for which it is refused, and changes
/// value and end if something belongs to it.
inline std::string judge_rest(const NumberReader& reader, NumberReader::Number& number, std::string& unit_text) {
  const std::string_view line = reader.line();
  const std::size_t end = number.end;
  const bool digit_next = reader.digit(end + 1);
  if ((reader.at_any(end, "._'") && digit_next)) return "it goes on after the number";
  if (reader.at_char(end, ',') && digit_next) {
    const auto begin = line.find_last_not_of("0123456789.", end - 1) + 1;
    const std::string_view text = line.substr(begin, end - begin);
    const auto point = text.find('.');
    // 1,5 and 1.234,5: a comma may stand before decimals.
    if (point == std::string_view::npos && number.whole) return "its comma may stand before decimals: print a point";
    if (point != std::string_view::npos && point >= 1 && point <= 3 && text.size() - point == 4 && text[0] != '0')
      return "its point may separate thousands: print it without";
    return "";
  }
  if (reader.at_char(end, '%')) return "it is a percentage: name that by 'unit: percent', or write % behind the group";
  const bool power = line.substr(end).starts_with("*10^") || line.substr(end).starts_with("*10**") ||
                     line.substr(end).starts_with("x10^") ||
                     line.substr(end).starts_with(
                         "\xc3\x97"
                         "10");
  if (power) return "a power of ten follows: print it as 1e-3";
  if (number.whole && reader.at_char(end, ':')) {
    std::size_t clock_end = end;
    double seconds = number.value;
    const int parts = reader.clock(clock_end, seconds);
    if (parts == 2) return "it may be minutes or hours: name that by 'unit: seconds', or write : behind the group";
    if (parts == 3) {
      number.value = seconds;
      number.end = clock_end;
    }
    return "";
  }
  std::size_t word_end = 0;
  const std::string word = reader.word(end, word_end);
  if (word.empty()) return "";
  if (number.whole && number.value == 0 && (word == "x" || word == "X") && reader.alnum(word_end))
    return "it is hexadecimal";
  double seconds = 0;
  std::size_t duration_end = 0;
  if (reader.digit(word_end) && reader.duration(number, duration_end, seconds) > 1) {
    number.value = seconds;
    number.end = duration_end;
    return "";
  }
  if (const double factor = NumberReader::prefix(word[0], false); factor > 0) {
    if (word == "K") return "K may be 1000 or 1024: name the unit, count or bytes, or write K behind the group";
    if (word.size() == 1 && !reader.digit(word_end)) {
      number.value *= factor;
      number.end = word_end;
      return "";
    }
    const std::size_t rest = word.size() > 1 && word[1] == 'i' ? 2 : 1;
    if (word.size() > rest && (word[rest] == 'B' || word[rest] == 'b'))
      return hypertune::detail::format(
          "'{}' may be another size in another line: name the unit, bytes or count, or write {} behind the group", word,
          word);
  }
  unit_text = word;
  return "";
}

/// What may stand behind a prefix.
inline constexpr std::array<std::string_view, 24> counted_things{
    "",     "B",     "b",   "bit", "bits", "byte", "bytes", "Byte", "bps", "Bps", "Hz", "FLOPS",
    "FLOP", "flops", "ops", "OPS", "iops", "IOPS", "pps",   "rps",  "qps", "tps", "it", "req"};

inline constexpr std::array<std::string_view, 5> byte_words{"B", "byte", "bytes", "Byte", "Bps"};

/// Scales a number by what stands behind it. Returns the reason for which it is refused.
inline std::string scale(const NumberReader& reader, NumberUnit unit, NumberReader::Number& number) {
  std::size_t end = number.end;
  if (unit == NumberUnit::seconds && number.whole) {
    double seconds = number.value;
    if (reader.clock(end, seconds) > 1) {
      number.value = seconds;
      number.end = end;
      return "";
    }
  }
  const bool apart = reader.at_char(end, ' ');
  std::size_t word_end = 0;
  const std::string word = reader.word(end + (apart ? 1U : 0U), word_end);
  if (word.empty()) return "";
  const auto refused = [&](const char* units) {  // a word that stands apart may be about something else
    return apart ? std::string() : hypertune::detail::format("'{}' is no unit of {}", word, units);
  };
  if (unit == NumberUnit::percent) {
    if (word != "%" && word != "percent" && word != "pct") return refused("percent");
    number.end = word_end;
    return "";
  }
  if (unit == NumberUnit::seconds) {
    double seconds = 0;
    if (reader.duration(number, end, seconds) == 0) return refused("time: ns, us, ms, s, min, h, d");
    number.value = seconds;
    number.end = end;
    if (std::string per; reader.at_char(end, '/') && !(per = reader.word(end + 1, end)).empty())
      number.end = end;  // ms/step
    return "";
  }
  const bool binary = word.size() > 1 && word[1] == 'i' && NumberReader::prefix(word[0], true) > 0;
  const double factor = NumberReader::prefix(word[0], binary);
  std::string_view base(word);
  if (factor > 0) base.remove_prefix(binary ? 2 : 1);
  const auto is_one_of = [](std::string_view name, const auto& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (unit == NumberUnit::bytes ? !base.empty() && !is_one_of(base, byte_words) : !is_one_of(base, counted_things))
    return unit == NumberUnit::bytes ? refused("bytes: B, kB, KiB, MB, …") : std::string();  // counted things
  if (factor > 0) number.value *= factor;
  number.end = word_end;
  if (std::string per; reader.at_char(word_end, '/') && !(per = reader.word(word_end + 1, word_end)).empty())
    number.end = word_end;  // MiB/s
  return "";
}

/// One name for each unit of time; any other word as it is. `m` may be something else.
inline std::string common_name(std::string word) {
  if (const double factor = NumberReader::time_unit(word); factor > 0 && word != "m")
    for (const std::string_view name : {"ns", "us", "ms", "s", "min", "h", "d"})
      if (NumberReader::time_unit(name) == factor) return std::string(name);
  return word;
}

/// A unit of time, or of things that are counted in thousands, that stands behind a number, apart or not.
inline std::string unit_after(const NumberReader& reader, std::size_t at) {
  if (reader.at_char(at, ' ')) ++at;
  std::size_t end = 0;
  std::string word = reader.word(at, end);
  if (word.empty() || reader.digit(end)) return "";
  if (NumberReader::time_unit(word) > 0) return word;
  const std::size_t letters = word.size() > 1 && word[1] == 'i' ? 2 : 1;
  const std::string_view base = std::string_view(word).substr(std::min(letters, word.size()));
  const bool counted = NumberReader::prefix(word[0], false) > 0 &&
                       std::find(counted_things.begin(), counted_things.end(), base) != counted_things.end();
  return counted || word == "B" || word == "bytes" ? word : "";
}

/// Whether the expression says itself what stands before or behind its group: then that is no part of the number.
inline bool says_before(std::string_view pattern, char c) {
  if (pattern.empty() || pattern.back() != c) return false;
  const bool escaped = pattern.size() > 1 && pattern[pattern.size() - 2] == '\\';
  const bool alnum = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  const bool means_more = std::string_view(".+*?)]}|^$").find(c) != std::string_view::npos;
  return escaped ? !alnum : !means_more;
}
inline bool says_behind(std::string_view pattern, char c) {
  std::string plain;  // without \d, \s, …
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const bool letter = i + 1 < pattern.size() && ((pattern[i + 1] >= 'a' && pattern[i + 1] <= 'z') ||
                                                   (pattern[i + 1] >= 'A' && pattern[i + 1] <= 'Z'));
    if (pattern[i] != '\\')
      plain += pattern[i];
    else if (letter)
      ++i;
  }
  if (plain.starts_with(c) && c != '.') return true;
  if (c == '.') return pattern.starts_with("\\.");
  const bool unit = c == '%' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == ':' || c == ',';
  return unit && plain.find(c) != std::string::npos;
}

}  // namespace detail

namespace detail {

inline constexpr std::pair<std::string_view, NumberUnit> unit_names[] = {{"percent", NumberUnit::percent},
                                                                         {"seconds", NumberUnit::seconds},
                                                                         {"bytes", NumberUnit::bytes},
                                                                         {"count", NumberUnit::count}};

}  // namespace detail

std::optional<NumberUnit> number_unit_named(std::string_view name) {
  for (const auto& [known, unit] : detail::unit_names)
    if (known == name) return unit;
  return std::nullopt;
}

std::string_view name_of(NumberUnit unit) {
  for (const auto& [name, known] : detail::unit_names)
    if (known == unit) return name;
  return {};
}

std::optional<double> number_in_line(const NumberPlace& place, NumberUnit unit, std::string& why,
                                     std::string* unit_text) {
  const std::string_view line = place.line;
  std::size_t begin = place.begin, end = place.end;
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  const std::string_view group = line.substr(begin, end - begin);
  std::string_view shown = group;  // in messages
  const auto refuse = [&](std::string_view reason) {
    why = hypertune::detail::format("'{}' is no number{}{}", shortened(shown, 40), reason.empty() ? "" : ": ", reason);
    return std::nullopt;
  };
  while (begin < end && blank(line[begin])) ++begin;
  // Strip punctuation that is no part of the number: `acc=([0-9.,]+)` on "acc=0.93, loss=0.2", or `loss: ([0-9.eE+-]+)`
  // on "loss: 0.2312." A percent sign is not stripped, because it changes the value.
  while (begin < end &&
         (blank(line[end - 1]) || std::string_view(",;:.!?)]}'\"+-").find(line[end - 1]) != std::string_view::npos))
    --end;
  if (begin == end) return refuse("");

  std::string lower(line.substr(begin, end - begin));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  const detail::NumberReader all(line, line.size());
  const bool said_before = begin > 0 && detail::says_before(place.before, line[begin - 1]);
  const bool signed_word = lower[0] == '-' || lower[0] == '+';
  if (const std::string_view word = std::string_view(lower).substr(signed_word ? 1 : 0);
      (word == "nan" || word == "nan(ind" || word == "nan(snan" || word == "inf" || word == "infinity") &&
      !all.letter(end)) {
    const bool minus_before =
        !signed_word && !said_before && begin > 0 && line[begin - 1] == '-' && (begin < 2 || !all.alnum(begin - 2));
    if (word.starts_with("nan")) return std::numeric_limits<double>::quiet_NaN();
    const bool negative = lower[0] == '-' || minus_before;
    return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  }

  // The expression may have found a part of the number only, at either end.
  const bool said_behind =
      unit == NumberUnit::none && place.match_end > place.end && detail::says_behind(place.after, line[place.end]);
  const detail::NumberReader reader(line, said_behind ? end : line.size());
  std::string behind, reason;
  double unscaled = 0;
  const auto judge = [&](detail::NumberReader::Number& one) {
    unscaled = one.value;
    if (unit != NumberUnit::none) return detail::scale(reader, unit, one);
    return said_behind ? std::string() : detail::judge_rest(reader, one, behind);
  };
  std::optional<detail::NumberReader::Number> number;
  std::size_t at = begin;
  if (!said_before) {
    constexpr std::size_t longest = 400;  // digits of the smallest double, written out
    while (at > 0 && begin - at < longest && (reader.digit(at - 1) || reader.at_any(at - 1, ".,_':eEdDhmsu+-"))) --at;
    while (at < begin && !number && reason.empty()) {
      auto earlier = reader.number(at);
      const std::size_t digits_end = earlier ? earlier->end : at + 1;
      if (earlier) {
        std::string why_not = judge(*earlier);
        if (digits_end > begin || earlier->end > begin || (unit == NumberUnit::none && !why_not.empty())) {
          reason = std::move(why_not);
          number = earlier;
          break;
        }
        behind.clear();
      }
      at = digits_end;
    }
  }
  if (!number) {
    at = begin;
    number = reader.number(begin, true);
    if (!number) return refuse("");
    reason = judge(*number);
  }
  if (at > 0 && !said_before && line[at - 1] == '^') reason = "it is of a power of ten: print it as 1e-3";
  const auto token_end = std::min(line.find_first_of(" \t;()[]{}", std::max(end, number->end)), line.size());
  if (at < begin || number->end > place.end || (!reason.empty() && token_end > place.end))
    shown = line.substr(at, token_end - at);
  // Things and bytes are whole: with them a comma before three digits separates thousands.
  const bool whole_things = (unit == NumberUnit::count || unit == NumberUnit::bytes) && number->value == unscaled;
  if (const auto text = number->ambiguous; !text.empty() && !whole_things) {
    const auto comma = text.find(',');
    if (at == begin && number->end <= place.end) shown = group;
    why = hypertune::detail::format("'{}' may be {}{} or {}.{}: print it without a comma", shortened(shown, 40),
                                    text.substr(0, comma), text.substr(comma + 1), text.substr(0, comma),
                                    text.substr(comma + 1));
    return std::nullopt;
  }
  if (!reason.empty()) return refuse(reason);
  if (number->end < end) {  // the group may have found the letters behind the number, too
    std::size_t word_end = number->end;
    const std::string word = reader.word(number->end, word_end);
    for (std::size_t next = 0; reader.at_char(word_end, '/') && !reader.word(word_end + 1, next).empty();)
      word_end = next;
    const bool exponent = word.size() == 1 && std::string_view("eEdD").find(word[0]) != std::string_view::npos;
    if (unit != NumberUnit::none || word.empty() || exponent || word_end != end) return refuse("");
  }
  if (unit_text != nullptr && unit == NumberUnit::none)
    *unit_text = detail::common_name(behind.empty() ? detail::unit_after(all, number->end) : std::move(behind));
  return number->value;
}

std::optional<double> number_in_text(std::string_view text, std::string& why) {
  return number_in_line({.line = text, .begin = 0, .end = text.size(), .match_end = text.size()}, NumberUnit::none,
                        why);
}

NumberUnit unit_of_letters(std::string_view letters) {
  const auto is_one_of = [](std::string_view name, const auto& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (letters == "%" || letters == "percent" || letters == "pct") return NumberUnit::percent;
  std::size_t end = 0;
  const detail::NumberReader reader(letters, letters.size());
  const std::string word = reader.word(0, end);
  if (word.empty() || (end < letters.size() && letters[end] != '/')) return NumberUnit::none;
  if (detail::NumberReader::time_unit(word) > 0)
    return word == "m" || word == "d" ? NumberUnit::none : NumberUnit::seconds;
  if (is_one_of(word, detail::byte_words)) return NumberUnit::bytes;
  const bool binary = word.size() > 1 && word[1] == 'i';
  if (detail::NumberReader::prefix(word[0], binary) <= 0) return NumberUnit::none;
  const std::string_view base = std::string_view(word).substr(binary ? 2 : 1);
  if (is_one_of(base, detail::byte_words)) return NumberUnit::bytes;
  return is_one_of(base, detail::counted_things) ? NumberUnit::count : NumberUnit::none;
}

std::optional<LeadingNumber> number_at_begin(std::string_view text) {
  const detail::NumberReader reader(text, text.size());
  LeadingNumber out;
  const bool sign = text.starts_with('-') || text.starts_with('+');
  std::size_t end = 0;
  std::string word = reader.word(sign ? 1 : 0, end);
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  if (word == "nan" || word == "inf" || word == "infinity") {
    out.value = word == "nan" ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    if (text.starts_with('-')) out.value = -out.value;
    out.length = end;
    return out;
  }
  const auto number = reader.number(0, true);
  if (!number) return std::nullopt;
  out.value = number->value;
  out.grouped = number->whole && text.substr(0, number->end).find(',') != std::string_view::npos;
  double seconds = 0;
  if (reader.duration(*number, end, seconds) > 1) {
    out.value = seconds;
    out.letters = "s";
  } else {
    end = number->end;
    std::size_t next = end;
    if (!reader.word(end, next).empty()) end = next;
    while (reader.at_char(end, '/') && !reader.word(end + 1, next).empty()) end = next;
    out.letters = text.substr(number->end, end - number->end);
  }
  out.length = end;
  return out;
}

}  // namespace hypertune::inline v0::local
