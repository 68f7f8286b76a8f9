// Descriptions of options: definitions.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/option.hpp>

#include <limits>
#include <string>
#include <string_view>

namespace hypertune::inline v0 {

std::string Bounds::text() const {
  const char* in_unit = unit == Unit::seconds ? " s" : "";
  std::string text = zero ? "0 or " : "";
  const bool upper = most < std::numeric_limits<double>::infinity();
  if (upper && !above_least && !below_most) return text + detail::format("from {} to {}{}", least, most, in_unit);
  text += detail::format("{} {}{}", above_least ? "above" : "at least", least, in_unit);
  return upper ? text + detail::format(" and {} {}{}", below_most ? "below" : "at most", most, in_unit) : text;
}

void detail::refuse_option(const char* type, const char* name, double value, const Bounds& bounds) {
  throw OptionError(type, name, detail::format("is {}, but must be {}", value, bounds.text()));
}

void detail::OptionText::put(const char* name, std::string_view value) const {
  text += detail::format("{}{}: {}", text.empty() ? "" : ", ", name, value);
}

OptionError::OptionError(std::string_view type, std::string_view option, std::string_view problem)
    : Error(Errc::usage, detail::format("{}: {} {}", type, option, problem)), option_(option) {}

void detail::OptionText::put_number(const char* name, double value, const Bounds& bounds) const {
  put(name, detail::format("{}{}", value, bounds.unit == Bounds::Unit::seconds ? "s" : ""));
}

void detail::OptionText::put_whole(const char* name, const std::string& value, const Bounds& bounds) const {
  put(name, value + (bounds.unit == Bounds::Unit::seconds ? "s" : ""));
}

}  // namespace hypertune::inline v0
