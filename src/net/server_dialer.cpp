#include "server_dialer.hpp"

#include "base64.hpp"
#include "request_text.hpp"
#include "response_reader.hpp"

#include <hypertune/detail/as_duration.hpp>
#include <hypertune/detail/run_clock.hpp>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>

namespace hypertune::inline v0::net {

namespace {

/// TCP options by which a vanished peer is noticed within a minute, also on idle streams.
void configure(asio::ip::tcp::socket& socket) {
  const auto set = [fd = socket.native_handle()](int level, int name, int value) {
    ::setsockopt(fd, level, name, &value, sizeof value);
  };
  ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 60000);
}

}  // namespace

void throw_cancelled() { throw boost::system::system_error(asio::error::operation_aborted); }

asio::awaitable<void> sleep_for(asio::io_context& io, double seconds) {
  asio::steady_timer timer(io);
  timer.expires_after(hypertune::detail::as_duration(seconds));
  co_await timer.async_wait(asio::use_awaitable);
}

asio::awaitable<ServerDialer::Endpoints> ServerDialer::resolve(const Url& where, double seconds, std::string& trouble) {
  struct State {
    explicit State(asio::io_context& io) : resolver(io), done(io) {}
    asio::ip::tcp::resolver resolver;
    asio::steady_timer done;
    Endpoints found;
    error_code error = asio::error::timed_out;
  };
  Endpoints endpoints;
  error_code error;
  if (const auto address = asio::ip::make_address(where.host, error); !error) {
    endpoints.emplace_back(address, where.port);
    co_return endpoints;
  }
  // A name look-up cannot be cancelled. It is abandoned, and owns what it needs.
  const auto state = std::make_shared<State>(io_);
  state->done.expires_after(hypertune::detail::as_duration(seconds));
  state->resolver.async_resolve(where.host, std::to_string(where.port), asio::ip::resolver_base::numeric_service,
                                [state](error_code failed, const asio::ip::tcp::resolver::results_type& results) {
                                  state->error = failed;
                                  for (const auto& result : results) state->found.push_back(result.endpoint());
                                  state->done.cancel();
                                });
  co_await state->done.async_wait(asio::redirect_error(asio::use_awaitable, error));
  if (state->error == asio::error::timed_out && error) throw_cancelled();
  if (state->error) trouble = fmt::format("cannot find the host '{}': {}", where.host, state->error.message());
  co_return state->found;
}

asio::awaitable<std::string> ServerDialer::connect(Wire& wire, const Endpoints& endpoints, double seconds) {
  const double until = hypertune::detail::steady_seconds() + seconds;
  error_code error = asio::error::host_unreachable;
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    const double left = until - hypertune::detail::steady_seconds();
    auto& socket = wire.socket();
    error_code ignored;
    socket.close(ignored);  // NOLINT(bugprone-unused-return-value)
    socket.open(endpoints[i].protocol(), error);
    if (error) continue;
    configure(socket);
    asio::steady_timer timer(io_);
    bool late = false;
    timer.expires_after(hypertune::detail::as_duration(left / static_cast<double>(endpoints.size() - i)));
    timer.async_wait([&wire, &late, guard = std::weak_ptr(wire.shared_from_this())](error_code cancelled) {
      if (cancelled || guard.expired()) return;
      late = true;
      error_code closed;
      wire.socket().close(closed);  // NOLINT(bugprone-unused-return-value)
    });
    co_await socket.async_connect(endpoints[i], asio::redirect_error(asio::use_awaitable, error));
    timer.cancel();
    if (!error && !late) co_return std::string();
    if (late)
      error = asio::error::timed_out;
    else if (error == asio::error::operation_aborted)
      throw_cancelled();
  }
  co_return error.message();
}

asio::awaitable<std::string> ServerDialer::pass_proxy(Wire& wire) {
  RequestText request{
      .method = "CONNECT", .target = place_.url.authority(), .host = place_.url.authority(), .user_agent = "hypertune"};
  Headers headers;
  if (!place_.proxy->user.empty())
    headers.emplace_back("Proxy-Authorization", "Basic " + base64_encoded(place_.proxy->user));
  const std::string bytes = to_bytes(std::move(request), headers);
  ResponseReader reader(1U << 16U, {}, false);
  std::string trouble;
  try {
    trouble = co_await exchange(wire, bytes, reader);
  } catch (const Error& e) { trouble = e.what(); }
  if (trouble.empty() && reader.status() != 200)
    trouble = fmt::format("it answered HTTP {}{}", reader.status(),
                          reader.status() == 407 ? ": it wants a login, which the proxy's URL may have" : "");
  co_return trouble;
}

asio::awaitable<Dialed> ServerDialer::dial(std::shared_ptr<TlsContext> tls, double seconds) {
  const double until = hypertune::detail::steady_seconds() + seconds;
  Dialed dialed;
  const Url& first = place_.proxy ? *place_.proxy : place_.url;
  const auto endpoints = co_await resolve(first, seconds, dialed.failure.trouble);
  if (!dialed.failure.trouble.empty()) co_return dialed;
  const auto wire = std::make_shared<Wire>(io_);
  std::string trouble = co_await connect(*wire, endpoints, until - hypertune::detail::steady_seconds());
  const std::string server = (place_.proxy ? "the proxy" : place_.what) + " " + first.authority();
  if (!trouble.empty()) {
    dialed.failure.trouble = fmt::format("cannot connect to {}: {}", server, trouble);
    co_return dialed;
  }
  wire->expires_in(std::max(0.1, until - hypertune::detail::steady_seconds()));
  if (place_.proxy) {
    trouble = co_await pass_proxy(*wire);
    if (wire->expired()) trouble = "it did not answer in time";
    if (!trouble.empty()) {
      dialed.failure.trouble = fmt::format("{} does not connect to {}: {}", server, place_.url.authority(), trouble);
      co_return dialed;
    }
  }
  if (tls) {
    bool trusted = true;
    trouble = co_await wire->start_tls(std::move(tls), trusted);
    if (!trusted) {
      dialed.failure.kind = Outcome::Kind::impossible;
      dialed.failure.trouble = fmt::format("the certificate of {} is not trusted {}{}", place_.url.authority(), trouble,
                                           place_.trust.empty() ? "" : "; " + place_.trust);
      co_return dialed;
    }
    if (wire->expired()) trouble = "it did not answer in time";
    if (!trouble.empty()) {
      dialed.failure.trouble = fmt::format("cannot talk to {} by TLS: {}", place_.url.authority(), trouble);
      co_return dialed;
    }
  }
  wire->expires_never();
  dialed.wire = wire;
  co_return dialed;
}

asio::awaitable<std::string> exchange(Wire& wire, const std::string& bytes, ResponseReader& reader,
                                      const std::function<void()>& headed) {
  const auto gone = [&wire](const error_code& error) -> std::string {
    if (wire.expired()) return "the answer did not come in time";
    if (error == asio::error::operation_aborted) throw_cancelled();
    return error == asio::error::eof ? "the connection was closed before the answer was complete"
                                     : "the connection broke: " + error.message();
  };
  error_code error;
  co_await asio::async_write(wire, asio::buffer(bytes), asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return gone(error);
  const auto buffer = std::make_unique_for_overwrite<char[]>(std::size_t{32} << 10U);
  while (!reader.done()) {
    const auto into = asio::buffer(buffer.get(), std::size_t{32} << 10U);
    const std::size_t size = co_await wire.async_read_some(into, asio::redirect_error(asio::use_awaitable, error));
    const bool before = reader.headed();
    const std::size_t used = size > 0 ? reader.feed({buffer.get(), size}) : 0;
    if (headed && !before && reader.headed()) headed();
    if (used < size) {
      wire.close();  // data after the answer was not asked for
      break;
    }
    if (!error) continue;
    if (wire.expired() || error == asio::error::operation_aborted || !reader.end()) co_return gone(error);
    break;
  }
  co_return std::string();
}

}  // namespace hypertune::inline v0::net
