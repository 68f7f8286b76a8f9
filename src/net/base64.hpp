// Base64.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::net {

/// Line breaks are skipped; nullopt: not base64. Needs OpenSSL.
std::optional<std::string> base64_decoded(std::string_view text);
std::string base64_encoded(std::string_view bytes);

}  // namespace hypertune::inline v0::net
