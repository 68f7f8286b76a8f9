// Formatting by fmt that compiles fast: fmt's own format() checks each format string by running a parser in the
// compiler, which was a sixth of what including hypertune cost its users.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>

namespace hypertune::inline v0::detail {

// The target header_check of hypertune's own tests defines HYPERTUNE_CHECK_FORMATS: it checks every format string at
// compile time, and is not linked with anything. All other code uses the same strings unchecked. If both were in one
// program, each inline function that formats would have two definitions.
#ifdef HYPERTUNE_CHECK_FORMATS
template <class... Args>
using FormatText = fmt::format_string<std::remove_cvref_t<Args>...>;
#else
template <class... Args>
using FormatText = fmt::string_view;
#endif

template <class... Args>
std::string format(FormatText<Args...> text, const Args&... args) {
  return fmt::vformat(text, fmt::make_format_args(args...));
}

/// Writes the output of a formatter. fmt::format_to() into a context would compile all of fmt's number formatting into
/// each file that prints the type.
template <class Context>
auto put(std::string_view text, Context& context) {
  return std::copy(text.begin(), text.end(), context.out());
}

/// Base of the formatters of enumerations: prints the result of to_string(), with the width and alignment of a text.
struct WordFormatter : fmt::formatter<std::string_view> {
  template <class Enum, class Context>
  auto format(Enum value, Context& context) const {
    return fmt::formatter<std::string_view>::format(to_string(value), context);
  }
};

}  // namespace hypertune::inline v0::detail
