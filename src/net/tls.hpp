// TLS: contexts of servers and clients, and which certificates are accepted.
#pragma once

#include "openssl.hpp"

#include <hypertune/net/tls_identity.hpp>

#include <boost/asio/ssl/context.hpp>
#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace hypertune::inline v0::net {

using SslContext = detail::OpensslOwner<SSL_CTX, SSL_CTX_free>;

enum class TlsPeers : std::uint8_t {
  own,      ///< hypertune's programs: TLS 1.3 only, with AES-GCM first
  browsers  ///< TLS 1.2 as well, and sessions that are taken up again
};

SslContext server_tls(const TlsIdentity& identity, TlsPeers peers = TlsPeers::own);

/// For a server without an authority: the caller checks its certificate by has_fingerprint().
SslContext pinned_client_tls();
/// Whether the certificate is the one of this SHA-256. nullptr: there is none.
bool has_fingerprint(const X509* certificate, std::string_view fingerprint);
/// That the certificate of `who` is not the pinned one. `whose`: what else it would be, as in "another driver".
std::string pin_trouble(std::string_view who, std::string_view whose);

/// For a server whose certificate an authority has signed.
struct TlsContext {
  boost::asio::ssl::context context;
  std::string name;  ///< the name that the server's certificate must have
};

/// All texts are PEM. Error of kind `input` that says what is wrong. `authority` empty: the system's authorities.
std::shared_ptr<TlsContext> make_tls_context(const std::string& authority, const std::string& certificate,
                                             const std::string& key, const std::string& name);
/// Prepares one connection. Error of kind `input` if no certificate can have this name.
void prepare_tls(SSL* connection, const std::string& name);
/// Why the server's certificate is not accepted; empty: it is.
std::string certificate_trouble(SSL* connection);

}  // namespace hypertune::inline v0::net
