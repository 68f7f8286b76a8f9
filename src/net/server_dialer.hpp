// ServerDialer: connections to one server, directly or through a proxy, with TLS.
#pragma once

#include "url.hpp"
#include "wire.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hypertune::inline v0::net {

/// The result of one attempt.
struct Outcome {
  enum class Kind : std::uint8_t {
    answered,    ///< see `status`
    unsent,      ///< no connection was made, so the call was not performed
    lost,        ///< it is unknown whether the call was performed
    impossible,  ///< another attempt will not help: an untrusted certificate, an answer that is too long
  };
  Kind kind = Kind::unsent;
  int status = 0;
  std::optional<double> retry_after = {};  ///< seconds, as the server says
  std::string trouble = {};                ///< one line, unless `answered`
};

/// A connection, or why there is none.
struct Dialed {
  std::shared_ptr<Wire> wire = {};
  Outcome failure = {};
};

struct ServerPlace {
  Url url;
  std::optional<Url> proxy = {};    ///< for https alone
  std::string what = "the server";  ///< what its users call it
  std::string trust = {};           ///< what may be wrong where its certificate is not trusted
};

/// Used on the io_context's one thread.
class ServerDialer {
 public:
  ServerDialer(asio::io_context& io, ServerPlace place) : io_(io), place_(std::move(place)) {
    if (!uses_tls()) place_.proxy.reset();
  }

  const Url& url() const { return place_.url; }
  bool uses_tls() const { return place_.url.scheme == "https"; }

  /// Throws only if it is cancelled. `tls` null: no TLS.
  asio::awaitable<Dialed> dial(std::shared_ptr<TlsContext> tls, double seconds);

 private:
  using Endpoints = std::vector<asio::ip::tcp::endpoint>;
  asio::awaitable<Endpoints> resolve(const Url& where, double seconds, std::string& trouble);
  asio::awaitable<std::string> connect(Wire& wire, const Endpoints& endpoints, double seconds);
  asio::awaitable<std::string> pass_proxy(Wire& wire);

  asio::io_context& io_;
  ServerPlace place_;
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

}  // namespace hypertune::inline v0::net
