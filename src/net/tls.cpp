// TLS: contexts of servers and clients, and which certificates are accepted.
#include "tls.hpp"

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/network_text.hpp>
#include <hypertune/error.hpp>

#include <boost/asio/buffer.hpp>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace hypertune::inline v0::net {

namespace ssl = boost::asio::ssl;
using detail::openssl_error;
using detail::openssl_failed;
using detail::OpensslOwner;

namespace {

SslContext context_of(const SSL_METHOD* method, int least) {
  SslContext context(SSL_CTX_new(method));
  if (!context || SSL_CTX_set_min_proto_version(context.get(), least) != 1 ||
      SSL_CTX_set_ciphersuites(context.get(),
                               "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256") != 1)
    openssl_failed("use TLS");
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return context;
}

}  // namespace

SslContext server_tls(const TlsIdentity& identity, TlsPeers peers) {
  const bool own = peers == TlsPeers::own;
  SslContext context = context_of(TLS_server_method(), own ? TLS1_3_VERSION : TLS1_2_VERSION);
  const auto certificate = detail::parse_certificate(identity.certificate);
  const std::string& pem = identity.private_key;
  const OpensslOwner<BIO, BIO_free_all> text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const OpensslOwner<EVP_PKEY, EVP_PKEY_free> key(text ? PEM_read_bio_PrivateKey(text.get(), nullptr, nullptr, nullptr)
                                                       : nullptr);
  if (!key) fail(Errc::input, "the private key of the TLS identity cannot be read: {}", openssl_error());
  if (SSL_CTX_use_certificate(context.get(), certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1 || SSL_CTX_check_private_key(context.get()) != 1)
    fail(Errc::input, "certificate and private key of the TLS identity do not belong together: {}", openssl_error());
  if (!own) return context;
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  return context;
}

SslContext pinned_client_tls() {
  SslContext context = context_of(TLS_client_method(), TLS1_3_VERSION);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  return context;
}

bool has_fingerprint(const X509* certificate, std::string_view fingerprint) {
  return certificate != nullptr && detail::certificate_fingerprint(certificate) == fingerprint;
}

std::string pin_trouble(std::string_view who, std::string_view whose) {
  return detail::format(
      "{} has another certificate than the one that is pinned: it is {}, or somebody stands in between", who, whose);
}

std::shared_ptr<TlsContext> make_tls_context(const std::string& authority, const std::string& certificate,
                                             const std::string& key, const std::string& name) {
  auto made = std::make_shared<TlsContext>(TlsContext{ssl::context(ssl::context::tls_client), name});
  auto& context = made->context;
  boost::system::error_code error;
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.native_handle(), SSL_MODE_RELEASE_BUFFERS);
  // Otherwise OpenSSL would ask for a key's password on the terminal.
  context.set_password_callback([](std::size_t, ssl::context::password_purpose) { return std::string(); }, error);
  context.set_verify_mode(ssl::verify_peer, error);
  if (authority.empty())
    context.set_default_verify_paths(error);
  else
    context.add_certificate_authority(boost::asio::buffer(authority), error);
  if (error) fail(Errc::input, "the CA certificate cannot be read: {}; it must be in PEM", error.message());
  if (!certificate.empty()) {
    context.use_certificate_chain(boost::asio::buffer(certificate), error);
    if (error) fail(Errc::input, "the client certificate cannot be read: {}; it must be in PEM", error.message());
    context.use_private_key(boost::asio::buffer(key), ssl::context::pem, error);
    if (error)
      fail(Errc::input,
           "the client key cannot be used: {}; it must be in PEM, without a password, and that of the certificate",
           error.message());
  }
  ERR_clear_error();
  return made;
}

void prepare_tls(SSL* connection, const std::string& name) {
  X509_VERIFY_PARAM* rules = SSL_get0_param(connection);
  X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  bool set = false;
  if (detail::parse_address(name)) {
    set = X509_VERIFY_PARAM_set1_ip_asc(rules, name.c_str()) == 1;
  } else {
    set = X509_VERIFY_PARAM_set1_host(rules, name.c_str(), name.size()) == 1 &&
          SSL_set_tlsext_host_name(connection, name.c_str()) == 1;
  }
  constexpr unsigned char http_1_1[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  if (!set || SSL_set_alpn_protos(connection, http_1_1, sizeof http_1_1) != 0)
    fail(Errc::input, "'{}' is no name that a certificate can have", name);
}

std::string certificate_trouble(SSL* connection) {
  const long result = SSL_get_verify_result(connection);
  if (result == X509_V_OK) return {};
  return X509_verify_cert_error_string(result);
}

}  // namespace hypertune::inline v0::net
