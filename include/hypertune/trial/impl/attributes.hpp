// Attributes: definitions.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/utf8.hpp>
#include <hypertune/error.hpp>
#include <hypertune/trial/attributes.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace hypertune::inline v0::detail {

void require_attribute_name(std::string_view name) {
  if (name.empty()) fail(Errc::usage, "an attribute has no name");
  if (name.size() > max_attribute_name)
    fail(Errc::usage, "an attribute's name has {} bytes, more than {}: '{}…'", name.size(), max_attribute_name,
         name.substr(0, 40));
  if (has_control(name))
    fail(Errc::usage, "an attribute's name of {} bytes has control characters, such as a line break", name.size());
}

Value bounded_attribute(Value value) {
  auto* text = std::get_if<std::string>(&value);
  if (text == nullptr || text->size() <= max_attribute) return value;
  constexpr std::string_view mark = "…";
  text->resize(utf8_cut(*text, max_attribute - mark.size()));
  text->append(mark);
  return value;
}

Attributes merge_attributes(Attributes& kept, const Attributes& given, std::size_t& left_out) {
  Attributes changed;
  for (const auto& [name, value] : given) {
    const Value* before = kept.find(name);
    if (!is_attribute_name(name) || (before == nullptr && kept.size() >= max_attributes)) {
      ++left_out;
      continue;
    }
    Value bounded = bounded_attribute(value);
    if (before != nullptr && (*before == bounded || (is_nan(*before) && is_nan(bounded)))) continue;
    kept.set(name, bounded);
    changed.set(name, std::move(bounded));
  }
  return changed;
}

std::pair<Attributes, std::string> noted(const std::string& whose, Attributes kept, const Attributes& given) {
  for (const auto& [name, value] : given) require_attribute_name(name);
  std::size_t left_out = 0;
  auto changed = merge_attributes(kept, given, left_out);
  if (left_out > 0) fail(Errc::usage, "{} has {} attributes already, and no more are kept", whose, kept.size());
  std::string line = whose + (changed.empty() ? " has that already" : detail::format(": {}", changed));
  return {std::move(changed), std::move(line)};
}

bool has_control(std::string_view text) { return std::any_of(text.begin(), text.end(), is_control); }

bool is_attribute_name(std::string_view name) {
  return !name.empty() && name.size() <= max_attribute_name && !has_control(name);
}

bool is_nan(const Value& value) {
  const auto* number = std::get_if<double>(&value);
  return number != nullptr && *number != *number;
}

}  // namespace hypertune::inline v0::detail
