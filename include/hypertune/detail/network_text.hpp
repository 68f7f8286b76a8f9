// Whether a text may be a network, for who includes no header of sockets.
#pragma once

#include <string_view>

namespace hypertune::inline v0::detail {

/// Has the form of "10.1.0.0/16", or of one of IPv6. parse_network() knows whether it is one.
inline bool looks_like_network(std::string_view text) {
  const auto slash = text.find('/');
  return slash != 0 && slash != std::string_view::npos && slash + 1 != text.size() &&
         text.find_first_not_of("0123456789abcdefABCDEF.:/") == std::string_view::npos;
}

}  // namespace hypertune::inline v0::detail
