// Formatting by fmt that compiles fast: fmt's own format() checks each format string by running a parser in the
// compiler, which was a sixth of what including hypertune cost its users, and <fmt/format.h> has all of its formatting.
#pragma once

#include <fmt/core.h>

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

/// What a formatter writes. fmt::format_to() would compile all of fmt's number formatting into each file that prints the
/// type.
template <class Context>
auto put(std::string_view text, Context& context) {
  auto out = context.out();
  for (const char c : text) *out++ = c;
  return out;
}

/// … with the width and alignment that `formatter` has read.
fmt::appender put_padded(std::string_view text, const fmt::formatter<std::string_view>& formatter,
                         fmt::format_context& context);

/// Base of the formatters of types that are printed by to_string().
struct TextFormatter : fmt::formatter<std::string_view> {
  template <class T, class Context>
  auto format(const T& value, Context& context) const {
    return put(to_string(value), context);
  }
};

/// … with the width and alignment of a text, as enumerations are.
struct WordFormatter : fmt::formatter<std::string_view> {
  template <class T, class Context>
  auto format(const T& value, Context& context) const {
    if constexpr (std::is_same_v<Context, fmt::format_context>)
      return put_padded(to_string(value), *this, context);
    else  // fmt::to_string() and its like have no width
      return put(to_string(value), context);
  }
};

}  // namespace hypertune::inline v0::detail
