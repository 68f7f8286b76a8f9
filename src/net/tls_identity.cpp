// TlsIdentity: a self-signed certificate and its key.
#include "openssl.hpp"
#include "private_file.hpp"

#include <hypertune/error.hpp>
#include <hypertune/net/tls_identity.hpp>

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>

#include <cstdint>

namespace hypertune::inline v0 {

namespace {

std::string drained(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

}  // namespace

TlsIdentity TlsIdentity::generate(std::string_view experiment, int days) {
  using detail::openssl_failed;
  const detail::OpensslOwner<EVP_PKEY, EVP_PKEY_free> key(EVP_EC_gen("P-256"));
  const detail::OpensslOwner<X509, X509_free> certificate(X509_new());
  if (!key || !certificate) openssl_failed("make a certificate");
  std::uint64_t serial = 0;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) != 1) openssl_failed("make a certificate");
  // The name is only informative; the fingerprint is what is trusted. X.509 allows 64 characters.
  const std::string name = "hypertune " + std::string(experiment.substr(0, 50));
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  constexpr long day = 24L * 3600;
  if (X509_set_version(certificate.get(), 2) != 1 ||
      ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()), serial >> 1U) != 1 ||
      X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -day) == nullptr ||
      X509_time_adj_ex(X509_getm_notAfter(certificate.get()), days, 0, nullptr) == nullptr ||
      X509_set_pubkey(certificate.get(), key.get()) != 1 ||
      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(name.data()),
                                 static_cast<int>(name.size()), -1, 0) != 1 ||
      X509_set_issuer_name(certificate.get(), subject) != 1 ||
      X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0)
    openssl_failed("make a certificate");
  const detail::OpensslOwner<BIO, BIO_free_all> public_text(BIO_new(BIO_s_mem()));
  const detail::OpensslOwner<BIO, BIO_free_all> private_text(BIO_new(BIO_s_secmem()));
  if (!public_text || !private_text || PEM_write_bio_X509(public_text.get(), certificate.get()) != 1 ||
      PEM_write_bio_PrivateKey(private_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1)
    openssl_failed("write a certificate");
  return {.certificate = drained(public_text.get()), .private_key = drained(private_text.get())};
}

TlsIdentity TlsIdentity::from_file(const std::filesystem::path& path) {
  const std::string text = detail::read_private_file(path, std::size_t{64} << 10U);
  const auto part = [&](std::string_view begin, std::string_view end) -> std::string {
    const auto from = text.find(begin);
    const auto to = from == std::string::npos ? from : text.find(end, from);
    if (to == std::string::npos)
      fail(Errc::input, "'{}' does not hold a certificate and its private key in PEM", path.string());
    return text.substr(from, to + end.size() - from) + "\n";
  };
  TlsIdentity identity{.certificate = part("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"),
                       .private_key = part("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----")};
  static_cast<void>(identity.fingerprint());  // throws if it is invalid
  return identity;
}

void TlsIdentity::write_file(const std::filesystem::path& path) const {
  detail::write_private_file(path, certificate + private_key);
}

std::string TlsIdentity::fingerprint() const {
  return detail::certificate_fingerprint(detail::parse_certificate(certificate).get());
}

}  // namespace hypertune::inline v0
