#include "wire.hpp"

#ifdef HYPERTUNE_NET_TLS
#include "tls.hpp"

#include <boost/asio/ssl/stream.hpp>
#endif

#include <hypertune/detail/as_duration.hpp>
#include <hypertune/detail/format.hpp>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>

namespace hypertune::inline v0::net {

#ifdef HYPERTUNE_NET_TLS
struct Wire::Tls {
  Tls(asio::ip::tcp::socket& socket, TlsContext& context) : stream(socket, context.context) {}
  asio::ssl::stream<asio::ip::tcp::socket&> stream;
};
#else
struct Wire::Tls {  // there is none
  asio::ip::tcp::socket& stream;
};
#endif

Wire::Wire(asio::io_context& io) : io_(io), socket_(io), timer_(io) {}
Wire::~Wire() = default;

void Wire::read(asio::mutable_buffer into, Handler handler) {
  if (tls_)
    tls_->stream.async_read_some(into, std::move(handler));
  else
    socket_.async_read_some(into, std::move(handler));
}

void Wire::write(asio::const_buffer from, Handler handler) {
  if (tls_)
    tls_->stream.async_write_some(from, std::move(handler));
  else
    socket_.async_write_some(from, std::move(handler));
}

#ifdef HYPERTUNE_NET_TLS
asio::awaitable<std::string> Wire::start_tls(std::shared_ptr<TlsContext> context, bool& trusted) {
  context_ = std::move(context);
  auto tls = std::make_unique<Tls>(socket_, *context_);
  auto* ssl = tls->stream.native_handle();
  prepare_tls(ssl, context_->name);
  tls_ = std::move(tls);
  error_code error;
  co_await tls_->stream.async_handshake(asio::ssl::stream_base::client,
                                        asio::redirect_error(asio::use_awaitable, error));
  if (!error) co_return std::string();
  const std::string what = certificate_trouble(ssl);
  trusted = what.empty();
  if (!trusted) co_return hypertune::detail::format("for the name '{}': {}", context_->name, what);
  co_return error == asio::error::eof ? std::string("the connection was closed") : error.message();
}
#else
asio::awaitable<std::string> Wire::start_tls(std::shared_ptr<TlsContext>, bool&) {
  co_return std::string("this hypertune was built without OpenSSL");
}
#endif

void Wire::expires_in(double seconds) {
  timer_.expires_after(hypertune::detail::as_duration(seconds));
  timer_.async_wait([self = weak_from_this()](error_code error) {
    const auto wire = self.lock();
    if (error || !wire || wire->timer_.expiry() > std::chrono::steady_clock::now()) return;
    wire->expired_ = true;
    wire->close();
  });
}

void Wire::expires_never() { timer_.expires_at(std::chrono::steady_clock::time_point::max()); }

void Wire::close() noexcept {
  error_code ignored;
  timer_.cancel();
  // NOLINTNEXTLINE(bugprone-unused-return-value)
  socket_.close(ignored);
}

bool Wire::stale() {
  if (!socket_.is_open()) return true;
  char byte = 0;
  const auto n = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

}  // namespace hypertune::inline v0::net
