// Serves a connection behind TLS.
#pragma once

#include <hypertune/net/http_loop.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/stream_traits.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>

#include <utility>

namespace hypertune::inline v0::net {

/// As HttpLoop::serve_plain(), encrypted.
template <class Server>
boost::asio::awaitable<void> serve_tls(detail::HttpLoop& loop, boost::asio::ssl::context& context,
                                       boost::beast::tcp_stream plain, Server& server) {
  namespace asio = boost::asio;
  boost::beast::ssl_stream<boost::beast::tcp_stream> stream(std::move(plain), context);
  detail::HttpLoop::Connection connection(loop.open(), stream.next_layer());
  boost::system::error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  stream.next_layer().expires_after(loop.limits().first);
  co_await stream.async_handshake(asio::ssl::stream_base::server, token);
  if (error) co_return;
  co_await loop.serve(stream, connection, server);
}

}  // namespace hypertune::inline v0::net
