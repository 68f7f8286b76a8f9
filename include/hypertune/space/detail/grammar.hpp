// How a dimension is written: one line of YAML from which the same dimension can be read.
#pragma once

#include <hypertune/space/params.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::detail {

struct Dimension;
struct SpaceModel;

/// A number in bounds and quanta: shortest decimals, .inf if it is infinite.
std::string number_text(double x);

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
