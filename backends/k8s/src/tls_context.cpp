// Part of hypertune::k8s.
#include "tls_context.hpp"

#include "url.hpp"

#include <hypertune/error.hpp>

#include <boost/asio/buffer.hpp>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace hypertune::inline v0::k8s::detail {

namespace ssl = boost::asio::ssl;

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
  if (error)
    fail(Errc::input, "the CA certificate of the cluster cannot be read: {}; it must be in PEM", error.message());
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

void prepare_tls(void* connection, const TlsContext& context) {
  auto* ssl = static_cast<SSL*>(connection);
  X509_VERIFY_PARAM* rules = SSL_get0_param(ssl);
  X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  bool set = false;
  if (is_address(context.name)) {
    set = X509_VERIFY_PARAM_set1_ip_asc(rules, context.name.c_str()) == 1;
  } else {
    set = X509_VERIFY_PARAM_set1_host(rules, context.name.c_str(), context.name.size()) == 1 &&
          SSL_set_tlsext_host_name(ssl, context.name.c_str()) == 1;
  }
  constexpr unsigned char http_1_1[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  if (!set || SSL_set_alpn_protos(ssl, http_1_1, sizeof http_1_1) != 0)
    fail(Errc::input, "'{}' is no name that a certificate can have", context.name);
}

std::string certificate_trouble(void* connection) {
  const long result = SSL_get_verify_result(static_cast<SSL*>(connection));
  if (result == X509_V_OK) return {};
  return X509_verify_cert_error_string(result);
}

}  // namespace hypertune::inline v0::k8s::detail
