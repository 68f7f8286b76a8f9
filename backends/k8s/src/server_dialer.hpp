// ServerDialer: connections to the API server, directly or through a proxy, with TLS.
#pragma once

#include "retry.hpp"
#include "url.hpp"
#include "wire.hpp"

#include <hypertune/k8s/access.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hypertune::inline v0::k8s::detail {

/// A connection, or why there is none.
struct Dialed {
  std::shared_ptr<Wire> wire = {};
  Outcome failure = {};
};

/// Used on the io_context's one thread.
class ServerDialer {
 public:
  /// Error of kind `input` if the server or the proxy is not a valid URL.
  ServerDialer(asio::io_context& io, const Access& access);

  const Url& url() const { return url_; }
  bool uses_tls() const { return url_.scheme == "https"; }

  /// Throws only if it is cancelled. `tls` null: no TLS.
  asio::awaitable<Dialed> dial(std::shared_ptr<TlsContext> tls, double seconds);

 private:
  using Endpoints = std::vector<asio::ip::tcp::endpoint>;
  asio::awaitable<Endpoints> resolve(const Url& where, double seconds, std::string& trouble);
  asio::awaitable<std::string> connect(Wire& wire, const Endpoints& endpoints, double seconds);
  asio::awaitable<std::string> pass_proxy(Wire& wire);

  asio::io_context& io_;
  Url url_;
  std::unique_ptr<Url> proxy_;
};

inline const std::function<void()> nothing;

/// Sends a request and reads until its answer is complete, the connection ends, or the wire expires. Returns empty if
/// the answer is complete, else one line. Throws if it is cancelled, and what the reader throws. `headed` is called
/// when the headers of the answer are complete.
asio::awaitable<std::string> exchange(Wire& wire, const std::string& bytes, class ResponseReader& reader,
                                      const std::function<void()>& headed = nothing);

/// Throws the exception of a cancelled operation.
[[noreturn]] void throw_cancelled();
/// Waits; throws if it is cancelled.
asio::awaitable<void> sleep_for(asio::io_context& io, double seconds);

}  // namespace hypertune::inline v0::k8s::detail
