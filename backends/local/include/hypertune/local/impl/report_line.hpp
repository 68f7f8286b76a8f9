// Parsing of report lines.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/utf8.hpp>
#include <hypertune/local/number_text.hpp>
#include <hypertune/local/report_line.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_map>

namespace hypertune::inline v0::local {

const std::string* ReportLine::text(std::string_view name) const {
  const auto found = std::find_if(texts.begin(), texts.end(), [&](const auto& t) { return t.first == name; });
  return found == texts.end() ? nullptr : &found->second;
}

std::string shortened(std::string_view line, std::size_t most) {
  const std::size_t end = hypertune::detail::utf8_cut(line, most);
  std::string out(line.substr(0, end));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  return end < line.size() ? out + "…" : out;
}

namespace detail {

/// Parses one JSON object; nested objects and arrays are skipped. Accepts JSON as programs print it: Python's NaN,
/// Infinity and -Infinity are numbers.
class ReportParser {
 public:
  explicit ReportParser(std::string_view text) : text_(text) {}

  std::optional<ReportLine> parse() {
    ReportLine line;
    if (!object(line)) {
      if (why_.empty())
        why_ = "it is no JSON from " + (text_.empty() ? "its end" : "'" + shortened(text_, 20) + "'") + " on";
      return std::nullopt;
    }
    if (!why_.empty()) return std::nullopt;
    return line;
  }

  /// Why parse() returned nullopt.
  const std::string& why() const { return why_; }

  /// Parses the whole text as a number of JSON or Python.
  static std::optional<double> number(std::string_view token) {
    const auto special = word(token);
    return special ? special : plain_number(token);
  }

 private:
  bool object(ReportLine& line) {
    if (!take('{')) return false;
    if (!take('}')) {
      do {
        const auto name = string();
        if (!name || !take(':') || !member(*name, line)) return false;
      } while (take(','));
      if (!take('}')) return false;
    }
    blank();
    return text_.empty();
  }

  // If a name occurs twice, the later value counts, as in most JSON parsers. A line may have very many names, hence the
  // map.
  void put(Metrics& metrics, const std::string& name, double value) {
    constexpr std::size_t few = 32;
    if (metrics.size() < few) {
      const auto found = std::find_if(metrics.begin(), metrics.end(), [&](const auto& m) { return m.first == name; });
      if (found == metrics.end())
        metrics.emplace_back(name, value);
      else
        found->second = value;
      return;
    }
    if (places_.empty())
      for (std::size_t i = 0; i < metrics.size(); ++i) places_.emplace(metrics[i].first, i);
    if (const auto [place, fresh] = places_.emplace(name, metrics.size()); fresh)
      metrics.emplace_back(name, value);
    else
      metrics[place->second].second = value;
  }
  void refuse_step(std::string_view value) {
    why_ = hypertune::detail::format("'step' is {}, but must be a whole number from 0 to {}", shortened(value, 40),
                                     std::numeric_limits<int>::max() - 1);
  }

  void refuse_checkpoint(std::string_view value) {
    why_ =
        hypertune::detail::format("'checkpoint' is {}, but must be the name of a folder, a text", shortened(value, 40));
  }

  bool member(const std::string& name, ReportLine& line) {
    blank();
    if (text_.empty()) return false;
    if (text_.front() == '"') {
      auto value = string();
      if (!value) return false;
      if (name == "checkpoint")
        line.checkpoint = std::move(*value);
      else if (name == "step")
        refuse_step("the text '" + *value + "'");
      else if (const auto number = word(*value))
        put(line.metrics, name, *number);
      else
        line.texts.emplace_back(name, std::move(*value));
      return true;
    }
    if (text_.front() == '{' || text_.front() == '[') {
      if (name == "step") refuse_step("no number");
      if (name == "checkpoint") refuse_checkpoint("a list or an object");
      return skip_nested();
    }
    const auto end = std::min(text_.find_first_of(",}] \t\r\n"), text_.size());
    const std::string_view token = text_.substr(0, end);
    text_.remove_prefix(end);
    if (token == "null" && (name == "step" || name == "checkpoint")) return true;
    std::optional<double> value;
    if (token == "null")
      value = std::numeric_limits<double>::quiet_NaN();  // how some JSON writers write NaN
    else if (token == "true" || token == "false")
      value = token == "true" ? 1 : 0;
    else
      value = number(token);
    if (!value) {
      if (!token.empty())
        why_ = hypertune::detail::format("'{}' is {}, which is no number", name, shortened(token, 40));
      return false;
    }
    if (name == "checkpoint")
      refuse_checkpoint(token);
    else if (name != "step")
      put(line.metrics, name, *value);
    else if (token == "true" || token == "false" ||
             !(*value >= 0 && *value < 2147483647.0 && *value == std::floor(*value)))
      refuse_step(token);
    else
      line.step = static_cast<int>(*value);
    return true;
  }

  static std::optional<double> word(std::string_view text) {
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
    return std::nullopt;
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
    hypertune::detail::append_utf8(out, point);
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
  std::string why_;
  std::unordered_map<std::string, std::size_t> places_;  // index of each metric by name, if there are many
};

}  // namespace detail

std::optional<ReportLine> parse_report_line(std::string_view text, std::string* why) {
  detail::ReportParser parser(text);
  auto line = parser.parse();
  if (why != nullptr) *why = line ? "it has no number in it" : parser.why();
  if (line && why != nullptr)
    for (const auto& [name, value] : line->texts)
      *why = hypertune::detail::format("'{}' is the text '{}', no number", name, shortened(value, 40));
  if (!line || (line->metrics.empty() && !line->checkpoint && !(line->step && !line->texts.empty())))
    return std::nullopt;
  return line;
}

}  // namespace hypertune::inline v0::local
