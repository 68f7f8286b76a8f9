// Base64, by OpenSSL.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::k8s::detail {

/// Line breaks are skipped; nullopt: not base64.
std::optional<std::string> base64_decoded(std::string_view text);
std::string base64_encoded(std::string_view bytes);

}  // namespace hypertune::inline v0::k8s::detail
