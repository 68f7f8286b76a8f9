// Owning pointers for OpenSSL's objects, and its errors as Errors.
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace hypertune::inline v0::detail {

template <auto Free>
struct OpensslDelete {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};

template <class T, auto Free>
using OpensslOwner = std::unique_ptr<T, OpensslDelete<Free>>;

/// Throws an Error of kind `io` with OpenSSL's message.
[[noreturn]] void openssl_failed(std::string_view doing);
/// The text of OpenSSL's newest error in this thread; clears all errors.
std::string openssl_error();

/// Error of kind `input` if the text is not a certificate in PEM.
OpensslOwner<X509, X509_free> parse_certificate(std::string_view pem);
/// SHA-256, 64 hexadecimal digits.
std::string certificate_fingerprint(const X509* certificate);

using Sha256Digest = std::array<unsigned char, 32>;

/// SHA-256 of bytes that come in pieces.
class Sha256 {
 public:
  Sha256();
  void add(const void* data, std::size_t size);
  /// The hash of what was added since the last call (or the beginning).
  Sha256Digest take();

 private:
  OpensslOwner<EVP_MD, EVP_MD_free> algorithm_;
  OpensslOwner<EVP_MD_CTX, EVP_MD_CTX_free> context_;
};

}  // namespace hypertune::inline v0::detail
