// What hypertune's formatters write: definitions.
#pragma once

#include <hypertune/detail/format.hpp>

#include <fmt/format.h>

#include <string_view>

namespace hypertune::inline v0::detail {

fmt::appender put_padded(std::string_view text, const fmt::formatter<std::string_view>& formatter,
                         fmt::format_context& context) {
  return formatter.format(text, context);
}

}  // namespace hypertune::inline v0::detail
