// How a dimension is written: definitions.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/space/detail/grammar.hpp>
#include <hypertune/space/detail/model.hpp>

#include <charconv>
#include <cmath>

namespace hypertune::inline v0::detail {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      (result += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      result += detail::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      result += c;
  }
  return result + "\"";
}

std::string scalar_text(std::string_view text) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  constexpr std::string_view more = "0123456789-./+";
  if (text.empty() || letters.find(text[0]) == std::string_view::npos) return quoted(text);
  for (const char c : text)
    if (letters.find(c) == std::string_view::npos && more.find(c) == std::string_view::npos) return quoted(text);
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (const char* word : {"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"})
    if (lower == word) return quoted(text);
  return std::string(text);
}

std::string value_text(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return scalar_text(*text);
  if (const auto* real = std::get_if<double>(&value))
    return std::isinf(*real) ? number_text(*real) : real_text(*real + 0.0);  // -0 is written 0.0
  return to_string(value);
}

std::string list_text(const std::vector<Value>& values) {
  std::string text = "[";
  for (std::size_t i = 0; i < values.size(); ++i) text += (i == 0 ? "" : ", ") + value_text(values[i]);
  return text + "]";
}

std::string prior_text(const Dimension& dimension) {
  const auto& beliefs = dimension.beliefs;
  if (beliefs.empty()) return "";
  if (beliefs.size() == 1 && !beliefs[0].amount) return ", prior: " + value_text(beliefs[0].value);
  if (dimension.info.kind != DomainKind::categorical)
    return detail::format(", prior: {{value: {}, spread: {}}}", value_text(beliefs[0].value),
                          number_text(*beliefs[0].amount));
  std::string text;
  for (const auto& [value, amount] : beliefs)
    text += detail::format("{}{}: {}", text.empty() ? ", prior: {" : ", ", value_text(value),
                           amount ? number_text(*amount) : "favoured");
  return text + "}";
}

std::string describe(const Dimension& dimension, const SpaceModel& model) {
  std::string text = detail::format("{}: {{{}", scalar_text(dimension.name), dimension.grammar);
  if (!dimension.when.empty()) {
    text += ", when: {";
    const char* separator = "";
    for (const auto& condition : dimension.when) {
      const auto& parent = model.dimensions[condition.parent];
      text += separator + scalar_text(parent.name) + ": ";
      separator = ", ";
      if (condition.range) {
        text += detail::format("{{between: [{}, {}]}}", number_text(condition.lower), number_text(condition.upper));
        continue;
      }
      std::vector<Value> values;
      for (const double x : condition.values) values.push_back(model.value(condition.parent, x));
      text += values.size() == 1 ? value_text(values[0]) : list_text(values);
    }
    text += "}";
  }
  return text + prior_text(dimension) + "}";
}

std::string number_text(double x) {
  if (std::isinf(x)) return x > 0 ? ".inf" : "-.inf";
  return detail::format("{}", x + 0.0);  // -0 is written 0
}

}  // namespace hypertune::inline v0::detail
