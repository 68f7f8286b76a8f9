// Part of hypertune::k8s.
#include "base64.hpp"

#include <openssl/evp.h>

#include <cstddef>
#include <memory>

namespace hypertune::inline v0::k8s::detail {

std::optional<std::string> base64_decoded(std::string_view text) {
  if (text.size() > std::size_t{1} << 24U) return std::nullopt;
  const std::unique_ptr<EVP_ENCODE_CTX, decltype(&EVP_ENCODE_CTX_free)> context(EVP_ENCODE_CTX_new(),
                                                                                EVP_ENCODE_CTX_free);
  if (!context) return std::nullopt;
  EVP_DecodeInit(context.get());
  std::string decoded(text.size() / 4 * 3 + 8, '\0');
  auto* to = reinterpret_cast<unsigned char*>(decoded.data());
  int size = 0, rest = 0;
  if (EVP_DecodeUpdate(context.get(), to, &size, reinterpret_cast<const unsigned char*>(text.data()),
                       static_cast<int>(text.size())) < 0 ||
      EVP_DecodeFinal(context.get(), to + size, &rest) != 1)
    return std::nullopt;
  decoded.resize(static_cast<std::size_t>(size) + static_cast<std::size_t>(rest));
  return decoded;
}

std::string base64_encoded(std::string_view bytes) {
  std::string encoded((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  encoded.resize(static_cast<std::size_t>(size));
  return encoded;
}

}  // namespace hypertune::inline v0::k8s::detail
