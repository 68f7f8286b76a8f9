// What is noted of a trial, or of an experiment, beside its metrics.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/linkage.hpp>
#include <hypertune/error.hpp>
#include <hypertune/space/params.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace hypertune::inline v0 {

/// Attributes by name: texts, numbers, and flags. A note is an attribute `note`, a tag one whose value is true. Nothing
/// is decided by them: they are kept, shown and exported. A trial gives them in a Report, a person by `hypertune note`.
using Attributes = Params;

/// Bytes of a text, which is cut there; bytes of a name; names of one trial, and of the experiment.
inline constexpr std::size_t max_attribute = 4096, max_attribute_name = 128, max_attributes = 256;

namespace detail {

inline bool is_attribute_name(std::string_view name) { return !name.empty() && name.size() <= max_attribute_name; }

/// Error of kind `usage` for a name that no attribute can have.
void require_attribute_name(std::string_view name);

/// The value as it is kept: a text that is too long is cut, between two characters, and ends in "…".
Value bounded_attribute(Value value);

inline bool is_nan(const Value& value) {
  const auto* number = std::get_if<double>(&value);
  return number != nullptr && *number != *number;
}

/// Takes those of `given` over into `kept` that are new there or differ, and returns them. A name that cannot be, or
/// one too many, is left out, and `left_out` counts it.
Attributes merge_attributes(Attributes& kept, const Attributes& given, std::size_t& left_out);

/// What a person notes of `whose` ("trial 3"), which has `kept`: what of it is new, and a line for that person. Errors
/// of kind `usage`: a name that cannot be, or one too many.
std::pair<Attributes, std::string> noted(const std::string& whose, Attributes kept, const Attributes& given);

}  // namespace detail

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/trial/impl/attributes.hpp>
#endif
