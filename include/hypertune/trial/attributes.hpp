// What is noted of a trial, or of an experiment, beside its metrics.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/error.hpp>
#include <hypertune/space/params.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace hypertune {

/// Attributes by name: texts, numbers, and flags. A note is an attribute `note`, a tag one whose value is true. Nothing
/// is decided by them: they are kept, shown and exported. A trial gives them in a Report, a person by `hypertune note`.
using Attributes = Params;

/// Bytes of a text, which is cut there; bytes of a name; names of one trial, and of the experiment.
inline constexpr std::size_t longest_attribute = 4096, longest_attribute_name = 128, most_attributes = 256;

namespace detail {

inline bool is_attribute_name(std::string_view name) { return !name.empty() && name.size() <= longest_attribute_name; }

/// Error of kind `usage` for a name that no attribute can have.
inline void require_attribute_name(std::string_view name) {
  if (name.empty()) fail(Errc::usage, "an attribute has no name");
  if (name.size() > longest_attribute_name)
    fail(Errc::usage, "an attribute's name has {} bytes, more than {}: '{}…'", name.size(), longest_attribute_name,
         name.substr(0, 40));
}

/// The value as it is kept: a text that is too long is cut, between two characters, and ends in "…".
inline Value bounded_attribute(Value value) {
  auto* text = std::get_if<std::string>(&value);
  if (text == nullptr || text->size() <= longest_attribute) return value;
  constexpr std::string_view mark = "…";
  std::size_t end = longest_attribute - mark.size();
  while (end > 0 && (static_cast<unsigned char>((*text)[end]) & 0xC0U) == 0x80U) --end;
  text->resize(end);
  text->append(mark);
  return value;
}

inline bool is_nan(const Value& value) {
  const auto* number = std::get_if<double>(&value);
  return number != nullptr && *number != *number;
}

/// Takes those of `given` over into `kept` that are new there or differ, and returns them. A name that cannot be, or
/// one too many, is left out, and `left_out` counts it.
inline Attributes merge_attributes(Attributes& kept, const Attributes& given, std::size_t& left_out) {
  Attributes changed;
  for (const auto& [name, value] : given) {
    const Value* before = kept.find(name);
    if (!is_attribute_name(name) || (before == nullptr && kept.size() >= most_attributes)) {
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

/// What a person notes of `whose` ("trial 3"), which has `kept`: what of it is new, and a line for that person. Errors
/// of kind `usage`: a name that cannot be, or one too many.
inline std::pair<Attributes, std::string> noted(const std::string& whose, Attributes kept, const Attributes& given) {
  for (const auto& [name, value] : given) require_attribute_name(name);
  std::size_t left_out = 0;
  auto changed = merge_attributes(kept, given, left_out);
  if (left_out > 0) fail(Errc::usage, "{} has {} attributes already, and no more are kept", whose, kept.size());
  std::string line = whose + (changed.empty() ? " has that already" : detail::format(": {}", changed));
  return {std::move(changed), std::move(line)};
}

}  // namespace detail

}  // namespace hypertune
