// Attributes: notes on a trial or on an experiment, besides its metrics.
#pragma once

#include <hypertune/space/params.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0 {

/// Attributes by name: texts, numbers, and flags. A note is an attribute `note`, a tag is an attribute whose value is
/// true. No decision depends on them: they are stored, shown and exported. A trial sets them in a Report, the user by
/// `hypertune note`.
using Attributes = Params;

/// Limits: bytes of a text (longer ones are cut), bytes of a name (which has no control characters), names per trial and
/// for the experiment.
inline constexpr std::size_t max_attribute = 4096, max_attribute_name = 128, max_attributes = 256;

namespace detail {

constexpr bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }
bool has_control(std::string_view text);

bool is_attribute_name(std::string_view name);

/// Error of kind `usage` for an invalid name.
void require_attribute_name(std::string_view name);

/// The value as stored: a text that is too long is cut, between two characters, and ends in "…".
Value bounded_attribute(Value value);

bool is_nan(const Value& value);

/// Copies the attributes of `given` that are new or different into `kept`, and returns them. Invalid names, and names
/// beyond the limit, are left out and counted in `left_out`.
Attributes merge_attributes(Attributes& kept, const Attributes& given, std::size_t& left_out);

/// For attributes that the user sets on `whose` ("trial 3"), which has `kept`: returns the new or different ones, and a
/// message for the user. Errors of kind `usage`: an invalid name, or too many names.
std::pair<Attributes, std::string> noted(const std::string& whose, Attributes kept, const Attributes& given);

}  // namespace detail

}  // namespace hypertune::inline v0
