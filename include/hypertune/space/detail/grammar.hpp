// How a dimension is written: one line of YAML from which the same dimension can be read.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/space/detail/model.hpp>

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::detail {

/// A number in bounds and quanta: shortest decimals, .inf if it is infinite.
inline std::string number_text(double x) {
  if (std::isinf(x)) return x > 0 ? ".inf" : "-.inf";
  return detail::format("{}", x + 0.0);  // -0 is written 0
}

/// A string in double quotes.
std::string quoted(std::string_view text);

/// A string as a plain scalar if YAML reads that back as the same string, else in quotes.
std::string scalar_text(std::string_view text);

/// A value written so that its type is preserved: 1.0 stays a real number, "1" a string.
std::string value_text(const Value& value);

std::string list_text(const std::vector<Value>& values);

/// ", prior: …" if the user has given one.
std::string prior_text(const Dimension& dimension);

std::string describe(const Dimension& dimension, const SpaceModel& model);

}  // namespace hypertune::inline v0::detail
