// TlsContext: trusted authority and client certificate for connections to one server.
#pragma once

#include <boost/asio/ssl/context.hpp>

#include <memory>
#include <string>

namespace hypertune::inline v0::k8s::detail {

struct TlsContext {
  boost::asio::ssl::context context;
  std::string name;  // the name that the server's certificate must have
};

/// All texts are PEM. Error of kind `input` that says what is wrong. `authority` empty: the system's authorities.
std::shared_ptr<TlsContext> make_tls_context(const std::string& authority, const std::string& certificate,
                                             const std::string& key, const std::string& name);

/// Prepares one connection. `ssl` is an SSL*.
void prepare_tls(void* ssl, const TlsContext& context);

/// Why the server's certificate is not accepted; empty: it is.
std::string certificate_trouble(void* ssl);

}  // namespace hypertune::inline v0::k8s::detail
