#include "study.hpp"

#include <hypertune/detail/json_read.hpp>
#include <hypertune/error.hpp>
#include <hypertune/record/detail/json_text.hpp>
#include <hypertune/space/detail/grammar.hpp>

#include <boost/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <system_error>

namespace hypertune::inline v0::detail::import {

namespace {

// Boost.JSON does not know NaN, and may round the last digit of a number. Both are passed through it as strings that
// begin with this character.
constexpr char mark = '\0';
constexpr std::string_view written_mark = "\\u0000";

// Replaces bare words and non-integer numbers in the text by marked strings.
std::string with_marks(std::string_view text) {
  constexpr std::string_view number_characters = "+-.0123456789eE";
  std::string out;
  out.reserve(text.size());
  const auto marked = [&](std::string_view token) { (((out += '"') += written_mark) += token) += '"'; };
  bool within = false;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    std::size_t taken = 1;
    if (within) {
      taken = rest.front() == '\\' ? std::min<std::size_t>(2, rest.size()) : 1;
      within = rest.front() != '"';
      out += rest.substr(0, taken);
    } else if (rest.front() == '-' || (rest.front() >= '0' && rest.front() <= '9')) {
      taken = rest.starts_with("-Infinity") ? 9 : std::min(rest.find_first_not_of(number_characters), rest.size());
      const std::string_view token = rest.substr(0, taken);
      token.find_first_of(".eIE") == std::string_view::npos ? static_cast<void>(out += token) : marked(token);
    } else if (rest.starts_with("NaN") || rest.starts_with("Infinity")) {
      taken = rest.front() == 'N' ? 3 : 8;
      marked(rest.substr(0, taken));
    } else {
      within = rest.front() == '"';
      out += rest.front();
    }
    i += taken;
  }
  return out;
}

// Converts JSON that contains marked strings back.
std::string without_marks(std::string text) {
  const std::string begin = '"' + std::string(written_mark);
  for (std::size_t at = 0; (at = text.find(begin, at)) != std::string::npos;) {
    text.erase(at, begin.size());
    text.erase(std::min(text.find('"', at), text.size() - 1), 1);
  }
  return text;
}

std::string json_word(const Value& value) {
  std::string out;
  append_json(out, value);
  return out;
}

// As Python compares them: True is 1, 1 is 1.0. NaN is the same choice as NaN.
bool same_choice(const Value& a, const Value& b) {
  const auto* text = std::get_if<std::string>(&a);
  if (const auto* other = std::get_if<std::string>(&b); text != nullptr || other != nullptr)
    return text != nullptr && other != nullptr && *text == *other;
  const auto real = [](const Value& value) {
    if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1.0 : 0.0;
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
    return std::get<double>(value);
  };
  return a == b || real(a) == real(b) || (std::isnan(real(a)) && std::isnan(real(b)));
}

}  // namespace

boost::json::value parse_json(std::string_view text, const std::string& where) {
  boost::system::error_code wrong;
  boost::json::parse_options options;
  options.max_depth = 64;
  auto value = boost::json::parse(with_marks(text), wrong, {}, options);
  if (wrong) fail(Errc::input, "{}: this is no JSON ({})", where, wrong.message());
  return value;
}

std::optional<double> number(const boost::json::value& value) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (value.is_number()) return value.to_number<double>();
  if (!value.is_string()) return std::nullopt;
  std::string_view text = value.get_string();
  if (!text.starts_with(mark)) return std::nullopt;
  text.remove_prefix(1);
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return infinity;
  if (text == "-Infinity") return -infinity;
  double real = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), real);
  if (wrong == std::errc::result_out_of_range) return text.find("e-") == std::string_view::npos ? infinity : 0;
  if (wrong != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return real;
}

Value plain_value(const boost::json::value& value) {
  if (value.is_bool()) return value.get_bool();
  if (value.is_int64()) return value.get_int64();
  if (value.is_uint64()) return std::to_string(value.get_uint64());  // a double would change its last digits
  if (const auto real = number(value)) return *real;
  if (value.is_string()) return std::string(value.get_string());
  return value.is_null() ? std::string("None") : without_marks(boost::json::serialize(value));
}

Distribution::Distribution(std::string_view json, const std::string& where) {
  const auto value = parse_json(json, where);
  const auto real = [&](const char* pointer) {
    const auto* found = value_at(value, pointer);
    return found == nullptr ? std::nullopt : number(*found);
  };
  const auto* name = value_at(value, "/name");
  if (name == nullptr || !name->is_string()) fail(Errc::input, "{}: a distribution without a name", where);
  const std::string kind(name->get_string());
  if (const auto* choices = array_at(value, "/attributes/choices")) {
    for (const auto& choice : *choices) choices_.push_back(plain_value(choice));
    text_ = detail::format("{{choice: {}}}", list_text(choices_));
    return;
  }
  const auto low = real("/attributes/low"), high = real("/attributes/high");
  if (!low || !high) fail(Errc::input, "{}: a distribution '{}' without bounds", where, kind);
  whole_ = kind.starts_with("Int");
  log_ = kind.find("Log") != std::string::npos || flag_at(value, "/attributes/log");
  const char* word = whole_ ? log_ ? "log_int" : "int" : log_ ? "log_uniform" : "uniform";
  text_ = detail::format("{{{}: [{}, {}]", word, json_word(value_of(*low)), json_word(value_of(*high)));
  auto step = real("/attributes/step");
  if (!step) step = real("/attributes/q");
  if (step && !(whole_ && *step == 1)) text_ += detail::format(", quantum: {}", json_word(value_of(*step)));
  text_ += '}';
}

bool Distribution::compatible(const Distribution& other) const {
  return whole_ == other.whole_ && log_ == other.log_ &&
         std::ranges::equal(choices_, other.choices_, [](const Value& a, const Value& b) { return same_choice(a, b); });
}

Value Distribution::value_of(double stored) const {
  constexpr double most = 9e15;
  if (whole_ && std::fabs(stored) < most) return static_cast<std::int64_t>(std::llround(stored));
  return stored;
}

Value Distribution::value(double stored) const {
  if (choices_.empty()) return value_of(stored);
  if (!(stored >= 0 && stored < static_cast<double>(choices_.size())))
    fail(Errc::input, "a value is choice number {} of {}", stored, choices_.size());
  return choices_[static_cast<std::size_t>(stored)];
}

}  // namespace hypertune::inline v0::detail::import
