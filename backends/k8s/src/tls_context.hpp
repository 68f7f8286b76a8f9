// TlsContext: what connections to one server trust, and who they say they are.
#pragma once

#include <boost/asio/ssl/context.hpp>

#include <memory>
#include <string>

namespace hypertune::inline v0::k8s::detail {

struct TlsContext {
  boost::asio::ssl::context context;
  std::string name;  // that the server's certificate must have
};

/// All in PEM. Error of kind `input` that says what is not right. `authority` empty: the system's.
std::shared_ptr<TlsContext> make_tls_context(const std::string& authority, const std::string& certificate,
                                             const std::string& key, const std::string& name);

/// Prepares one connection. `ssl` is an SSL*.
void prepare_tls(void* ssl, const TlsContext& context);

/// What the server's certificate lacks; empty: nothing.
std::string certificate_trouble(void* ssl);

}  // namespace hypertune::inline v0::k8s::detail
