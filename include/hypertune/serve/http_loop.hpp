// HttpLoop: accepts connections, reads requests, and writes what a server answers.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/serve/open_connections.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

namespace hypertune::inline v0 {

/// How long a server waits for its clients, how many it serves at a time, and how large a request may be.
struct HttpLimits {
  int connections = 256;                            ///< at a time; above this an idle one is closed for a new one
  std::chrono::milliseconds first{30'000};          ///< from accepting a connection to its first request
  std::chrono::milliseconds idle{10 * 60 * 1'000};  ///< between requests
  std::chrono::milliseconds request{30'000};        ///< from the first byte of a request to its last
  std::chrono::milliseconds answer{30'000};         ///< until a client has received its answer
  std::uint32_t head = 8 << 10;                     ///< bytes of a request's address and headers
  std::uint64_t body = 1 << 20;                     ///< bytes of a request's body; 0: it must have none
};

namespace detail {

using HttpRequest = boost::beast::http::request<boost::beast::http::string_body>;
using HttpResponse = boost::beast::http::response<boost::beast::http::string_body>;

/// The coroutines run on the thread that runs `context()`. Destroying a loop destroys its unfinished coroutines, so a
/// server declares whatever they use before its loop.
class HttpLoop {
 public:
  using Connection = OpenConnections::Connection;
  using Serve = std::function<boost::asio::awaitable<void>(boost::beast::tcp_stream)>;

  /// Listens. Throws an Error of kind `io` if it cannot; `where` is the text of `endpoint` in its message.
  HttpLoop(const boost::asio::ip::tcp::endpoint& endpoint, std::string_view where, const HttpLimits& limits)
      : limits_(limits), acceptor_(context_), room_(context_) {
    try {
      acceptor_.open(endpoint.protocol());
      acceptor_.set_option(boost::asio::ip::tcp::acceptor::reuse_address(true));
      acceptor_.bind(endpoint);
      acceptor_.listen();
      port_ = acceptor_.local_endpoint().port();
    } catch (const boost::system::system_error& e) {
      fail(Errc::io, "cannot listen on {}: {}; choose another --port, or 0 for any", where, e.code().message());
    }
  }
  HttpLoop(const HttpLoop&) = delete;
  HttpLoop& operator=(const HttpLoop&) = delete;
  ~HttpLoop() { open_.end(); }

  boost::asio::io_context& context() { return context_; }
  OpenConnections& open() { return open_; }
  std::uint16_t port() const { return port_; }
  const HttpLimits& limits() const { return limits_; }

  /// Accepts connections, and starts `serve` for each.
  void start(Serve serve) {
    auto accepted = accept(std::move(serve));
    boost::asio::co_spawn(context_, std::move(accepted), boost::asio::detached);
  }

  /// Serves the requests of a connection without encryption.
  template <class Server>
  boost::asio::awaitable<void> serve_plain(boost::beast::tcp_stream stream, Server& server) {
    Connection connection(open_, stream);
    co_await serve(stream, connection, server);
  }

  /// Serves the requests of a connection, one after the other. `server` has
  /// `HttpResponse refusal_of(error_code)`: the answer to a malformed request, and
  /// `awaitable<std::optional<HttpResponse>> answer(stream, request)`: nullopt ends the connection at once.
  template <class Stream, class Server>
  boost::asio::awaitable<void> serve(Stream& stream, Connection& connection, Server& server) {
    namespace http = boost::beast::http;
    auto& socket = boost::beast::get_lowest_layer(stream);
    boost::beast::flat_buffer buffer;
    boost::system::error_code error;
    auto token = boost::asio::redirect_error(boost::asio::use_awaitable, error);
    for (bool more = true; more;) {
      http::request_parser<http::string_body> parser;
      parser.header_limit(limits_.head);
      parser.body_limit(limits_.body);
      if (buffer.size() == 0) {
        socket.expires_after(connection.proven ? limits_.idle : limits_.first);
        const std::size_t read = co_await stream.async_read_some(buffer.prepare(4096), token);
        if (error) co_return;
        buffer.commit(read);
      }
      socket.expires_after(limits_.request);
      co_await http::async_read(stream, buffer, parser, token);
      if (error && error.category() != http::make_error_code(http::error::bad_method).category()) co_return;
      const HttpRequest& request = parser.get();
      connection.busy = true;
      std::optional<HttpResponse> reply;
      if (error) {
        reply = server.refusal_of(error);
      } else {
        socket.expires_never();  // an answer may take as long as it needs
        reply = co_await server.answer(stream, request);
        if (!reply) co_return;
      }
      more = !error && request.keep_alive();
      reply->version(error ? 11 : request.version());
      reply->keep_alive(more);
      reply->prepare_payload();
      if (request.method() == http::verb::head) reply->body().clear();
      socket.expires_after(limits_.answer);
      co_await http::async_write(stream, *reply, token);
      if (error) co_return;
      connection.busy = false;
      connection.proven = more;
      connection.since = OpenConnections::Clock::now();
    }
    // Closing a socket with unread bytes resets the connection, and the client may lose its answer.
    socket.socket().shutdown(boost::asio::ip::tcp::socket::shutdown_send, error);
    socket.expires_after(std::chrono::seconds(5));
    for (std::size_t left = std::size_t{64} << 20; !error && left > 0;) {
      buffer.clear();
      const std::size_t read = co_await socket.async_read_some(buffer.prepare(65536), token);
      left -= std::min(left, read);
    }
  }

 private:
  boost::asio::awaitable<void> accept(Serve serve) {
    using boost::asio::ip::tcp;
    boost::system::error_code error;
    auto token = boost::asio::redirect_error(boost::asio::use_awaitable, error);
    for (;;) {
      co_await acceptor_.async_wait(tcp::acceptor::wait_read, token);
      if (error == boost::asio::error::operation_aborted) co_return;
      if (open_.size() < static_cast<std::size_t>(limits_.connections)) {
        tcp::socket socket = co_await acceptor_.async_accept(token);
        if (error == boost::asio::error::operation_aborted) co_return;
        if (!error) {
          auto served = serve(boost::beast::tcp_stream(std::move(socket)));
          boost::asio::co_spawn(context_, std::move(served), boost::asio::detached);
          continue;
        }
      }
      // No room, or no descriptor: the next connection waits in the system's queue until another one ends.
      open_.make_room();
      room_.expires_after(std::chrono::milliseconds(100));
      co_await room_.async_wait(token);
    }
  }

  HttpLimits limits_;
  std::uint16_t port_ = 0;
  OpenConnections open_{&room_};  // before the context, whose destructor ends the remaining connections
  boost::asio::io_context context_{1};
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer room_;
};

}  // namespace detail
}  // namespace hypertune::inline v0
