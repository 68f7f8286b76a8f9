// Wrappers of OpenSSL: errors, certificates, SHA-256.
#include "openssl.hpp"

#include <hypertune/detail/hex.hpp>
#include <hypertune/error.hpp>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>

namespace hypertune::inline v0::detail {

std::string openssl_error() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  if (code == 0) return "no reason given";
  char text[256];
  ERR_error_string_n(code, text, sizeof text);
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : text;
}

void openssl_failed(std::string_view doing) { fail(Errc::io, "OpenSSL cannot {}: {}", doing, openssl_error()); }

OpensslOwner<X509, X509_free> parse_certificate(std::string_view pem) {
  const OpensslOwner<BIO, BIO_free_all> text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  OpensslOwner<X509, X509_free> certificate(text ? PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr) : nullptr);
  if (!certificate) fail(Errc::input, "this is no certificate in PEM: {}", openssl_error());
  return certificate;
}

std::string certificate_fingerprint(const X509* certificate) {
  Sha256Digest digest{};
  unsigned int size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest.data(), &size) != 1 || size != digest.size())
    openssl_failed("hash a certificate");
  return to_hex(digest);
}

Sha256::Sha256() : algorithm_(EVP_MD_fetch(nullptr, "SHA256", nullptr)), context_(EVP_MD_CTX_new()) {
  if (!algorithm_ || !context_ || EVP_DigestInit_ex2(context_.get(), algorithm_.get(), nullptr) != 1)
    openssl_failed("hash by SHA-256");
}

void Sha256::add(const void* data, std::size_t size) {
  if (EVP_DigestUpdate(context_.get(), data, size) != 1) openssl_failed("hash by SHA-256");
}

Sha256Digest Sha256::take() {
  Sha256Digest digest{};
  unsigned int size = 0;
  if (EVP_DigestFinal_ex(context_.get(), digest.data(), &size) != 1 ||
      EVP_DigestInit_ex2(context_.get(), algorithm_.get(), nullptr) != 1)
    openssl_failed("hash by SHA-256");
  return digest;
}

}  // namespace hypertune::inline v0::detail
