// A report as a command prints it: one line, one JSON object.
#pragma once

#include <hypertune/trial/report.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace hypertune::local {

/// What such a line says.
struct ReportLine {
  Metrics metrics;  ///< its numbers, booleans (0 or 1), and the words NaN, Infinity, -Infinity, quoted or not
  std::optional<int> step;
  std::optional<std::string> checkpoint;
};

namespace detail {

/// Reads one JSON object; members that are no numbers are passed over. JSON as programs print it: Python's NaN,
/// Infinity and -Infinity are numbers.
class ReportParser {
 public:
  explicit ReportParser(std::string_view text) : text_(text) {}

  std::optional<ReportLine> parse() {
    ReportLine line;
    if (!take('{')) return std::nullopt;
    if (!take('}')) {
      do {
        const auto name = string();
        if (!name || !take(':') || !member(*name, line)) return std::nullopt;
      } while (take(','));
      if (!take('}')) return std::nullopt;
    }
    blank();
    if (!text_.empty()) return std::nullopt;
    return line;
  }

 private:
  bool member(const std::string& name, ReportLine& line) {
    blank();
    if (text_.empty()) return false;
    if (text_.front() == '"') {
      auto value = string();
      if (!value) return false;
      if (name == "checkpoint")
        line.checkpoint = std::move(*value);
      else if (const auto number = word(*value))
        line.metrics.emplace_back(name, *number);
      return true;
    }
    if (text_.front() == '{' || text_.front() == '[') return skip_nested();
    const auto end = std::min(text_.find_first_of(",}] \t\r\n"), text_.size());
    const std::string_view token = text_.substr(0, end);
    text_.remove_prefix(end);
    if (token == "null" && (name == "step" || name == "checkpoint")) return true;
    std::optional<double> value;
    if (token == "null")
      value = std::numeric_limits<double>::quiet_NaN();  // what JSON makes of NaN
    else if (token == "true" || token == "false")
      value = token == "true" ? 1 : 0;
    else
      value = number(token);
    if (!value) return false;
    if (name == "step") {
      if (!(*value >= 0 && *value < 2147483647.0 && *value == std::floor(*value))) return false;
      line.step = static_cast<int>(*value);
    } else {
      line.metrics.emplace_back(name, *value);
    }
    return true;
  }

  static std::optional<double> word(std::string_view text) {
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
    return std::nullopt;
  }
  static std::optional<double> number(std::string_view token) {
    if (const auto special = word(token)) return special;
    if (token.empty() || token.find_first_not_of("0123456789+-.eE") != std::string_view::npos) return std::nullopt;
    double value = 0;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
    if (end != token.data() + token.size()) return std::nullopt;
    if (error == std::errc::result_out_of_range) {  // too large, or too small
      const auto exponent = token.find_first_of("eE");
      const bool tiny =
          exponent != std::string_view::npos && token.substr(exponent).find('-') != std::string_view::npos;
      value = tiny ? 0 : std::numeric_limits<double>::infinity();
      return token.front() == '-' ? -value : value;
    }
    if (error != std::errc()) return std::nullopt;
    return value;
  }

  std::optional<std::string> string() {
    if (!take('"')) return std::nullopt;
    std::string out;
    while (!text_.empty()) {
      const char c = text_.front();
      text_.remove_prefix(1);
      if (c == '"') return out;
      if (c != '\\') {
        out += c;
        continue;
      }
      if (text_.empty()) return std::nullopt;
      const char escaped = text_.front();
      text_.remove_prefix(1);
      switch (escaped) {
        case 'n': out += '\n'; break;
        case 't': out += '\t'; break;
        case 'r': out += '\r'; break;
        case 'b': out += '\b'; break;
        case 'f': out += '\f'; break;
        case 'u':
          if (!unicode(out)) return std::nullopt;
          break;
        default: out += escaped; break;
      }
    }
    return std::nullopt;
  }
  std::optional<unsigned> hex4() {
    unsigned code = 0;
    if (text_.size() < 4) return std::nullopt;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + 4, code, 16);
    if (error != std::errc() || end != text_.data() + 4) return std::nullopt;
    text_.remove_prefix(4);
    return code;
  }
  bool unicode(std::string& out) {
    auto code = hex4();
    if (!code) return false;
    unsigned point = *code;
    if (point >= 0xD800 && point < 0xDC00 && text_.substr(0, 2) == "\\u") {
      text_.remove_prefix(2);
      const auto low = hex4();
      if (!low || *low < 0xDC00 || *low > 0xDFFF) return false;
      point = 0x10000 + ((point - 0xD800) << 10U) + (*low - 0xDC00);
    }
    const auto put = [&](unsigned byte) { out += static_cast<char>(byte); };
    if (point < 0x80) {
      put(point);
    } else if (point < 0x800) {
      put(0xC0U | point >> 6U), put(0x80U | (point & 0x3FU));
    } else if (point < 0x10000) {
      put(0xE0U | point >> 12U), put(0x80U | (point >> 6U & 0x3FU)), put(0x80U | (point & 0x3FU));
    } else {
      put(0xF0U | point >> 18U), put(0x80U | (point >> 12U & 0x3FU));
      put(0x80U | (point >> 6U & 0x3FU)), put(0x80U | (point & 0x3FU));
    }
    return true;
  }
  bool skip_nested() {
    int depth = 0;
    while (!text_.empty()) {
      const char c = text_.front();
      if (c == '"') {
        if (!string()) return false;
        continue;
      }
      text_.remove_prefix(1);
      if (c == '{' || c == '[') ++depth;
      if ((c == '}' || c == ']') && --depth == 0) return true;
    }
    return false;
  }
  void blank() {
    const auto begin = text_.find_first_not_of(" \t\r\n");
    text_.remove_prefix(std::min(begin, text_.size()));
  }
  bool take(char c) {
    blank();
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }

  std::string_view text_;
};

}  // namespace detail

/// nullopt: the line is no JSON object with a metric or a checkpoint in it, but something else that the command
/// printed.
inline std::optional<ReportLine> parse_report_line(std::string_view text) {
  auto line = detail::ReportParser(text).parse();
  if (!line || (line->metrics.empty() && !line->checkpoint)) return std::nullopt;
  return line;
}

}  // namespace hypertune::local
