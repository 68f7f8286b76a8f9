#include "http_client.hpp"

#include "response_reader.hpp"
#include "server_dialer.hpp"
#ifdef HYPERTUNE_NET_TLS
#include "tls.hpp"
#endif

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/error.hpp>

#include <boost/asio/co_spawn.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

namespace hypertune::inline v0::net {

namespace {

constexpr std::size_t largest_answer = std::size_t{64} << 20U;

}  // namespace

struct HttpClient::State {
  State(Url server, Headers more) : headers(std::move(more)), dialer(io, {.url = std::move(server)}) {
#ifdef HYPERTUNE_NET_TLS
    if (dialer.uses_tls()) tls = make_tls_context("", "", "", dialer.url().host);
#endif
  }

  asio::awaitable<void> exchange_once(const std::string& bytes, double seconds, ResponseReader& reader,
                                      std::string& trouble) {
    const double until = hypertune::detail::steady_seconds() + seconds;
    if (!wire) {
      Dialed dialed = co_await dialer.dial(tls, seconds);
      wire = std::move(dialed.wire);
      trouble = std::move(dialed.failure.trouble);
    }
    if (!wire) co_return;
    wire->expires_in(std::max(until - hypertune::detail::steady_seconds(), 0.01));
    trouble = co_await exchange(*wire, bytes, reader);
    wire->expires_never();
  }

  /// Returns what went wrong, or empty.
  std::string run(const std::string& bytes, double seconds, ResponseReader& reader) {
    std::string trouble;
    std::optional<std::exception_ptr> end;
    asio::co_spawn(io, exchange_once(bytes, seconds, reader, trouble),
                   [&](std::exception_ptr error) { end = std::move(error); });
    io.restart();
    while (!end) io.run_one();  // not until the context has no work: that may be the abandoned search for a name
    try {
      if (*end) std::rethrow_exception(*end);
    } catch (const std::exception& e) { trouble = e.what(); }
    return trouble;
  }

  const Headers headers;
  asio::io_context io{1};
  ServerDialer dialer;
  std::shared_ptr<TlsContext> tls;
  std::shared_ptr<Wire> wire;
};

HttpClient::HttpClient(Url server, Headers headers)
    : state_(std::make_unique<State>(std::move(server), std::move(headers))) {}
HttpClient::~HttpClient() = default;

Answer HttpClient::request(const std::string& target, const std::string& body, std::chrono::milliseconds limit) {
  State& state = *state_;
  const Url& url = state.dialer.url();
  const std::string bytes = to_bytes({.method = body.empty() ? "GET" : "POST",
                                      .target = url.path + target,
                                      .host = url.authority(),
                                      .user_agent = "hypertune",
                                      .content_type = body.empty() ? "" : "application/json",
                                      .body = body},
                                     state.headers);
  // The server may close an idle connection at the moment it is reused: then try once more with a new one.
  const bool reused = state.wire != nullptr && !state.wire->stale();
  if (!reused) state.wire.reset();
  for (const bool last : {!reused, true}) {
    ResponseReader reader(largest_answer);
    const std::string trouble = state.run(bytes, std::chrono::duration<double>(limit).count(), reader);
    if (trouble.empty()) {
      if (!reader.keep_alive() || !state.wire->socket().is_open()) state.wire.reset();
      return {reader.status(), std::move(reader.body())};
    }
    state.wire.reset();
    if (last) throw Unreachable(trouble);
  }
  throw Unreachable("no answer");
}

}  // namespace hypertune::inline v0::net
