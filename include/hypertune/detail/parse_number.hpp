// A whole text as a number.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace hypertune::inline v0::detail {

/// The number that the whole text is, as std::from_chars reads it: no spaces, no '+', and no '-' if T is unsigned.
/// nullopt also for a number that T cannot hold.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

}  // namespace hypertune::inline v0::detail
