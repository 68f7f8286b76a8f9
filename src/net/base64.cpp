#include "base64.hpp"

#include <boost/beast/core/detail/base64.hpp>
#ifdef HYPERTUNE_NET_TLS
#include <openssl/evp.h>
#endif

#include <cstddef>
#include <memory>

namespace hypertune::inline v0::net {

#ifdef HYPERTUNE_NET_TLS
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
#endif

std::string base64_encoded(std::string_view bytes) {
  namespace base64 = boost::beast::detail::base64;
  std::string text(base64::encoded_size(bytes.size()), '\0');
  text.resize(base64::encode(text.data(), bytes.data(), bytes.size()));
  return text;
}

}  // namespace hypertune::inline v0::net
