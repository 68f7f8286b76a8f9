// HttpLoop: accepts connections, reads requests, and writes what a server answers.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/net/failed_connections.hpp>
#include <hypertune/net/open_connections.hpp>
#include <hypertune/net/request_reader.hpp>
#include <hypertune/net/spawn.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace hypertune::inline v0 {

/// How long a server waits for its clients, how many it serves at a time, and how large a request may be.
struct HttpLimits {
  int connections = 256;                            ///< at a time; above this an idle one is closed for a new one
  std::chrono::milliseconds first{30'000};          ///< from accepting a connection to its first request
  std::chrono::milliseconds idle{10 * 60 * 1'000};  ///< between requests
  std::chrono::milliseconds request{30'000};        ///< from the first byte of a request to its last
  std::chrono::milliseconds answer{30'000};         ///< until a client has received its answer
  std::uint32_t head = 8 << 10;                     ///< bytes of a request's address and headers; 64 KiB at most
  std::uint64_t body = 1 << 20;                     ///< bytes of a request's body; 0: it must have none
  std::uint64_t all = std::uint64_t{1} << 30U;      ///< bytes of all requests that are read or answered at a time
};

namespace detail {

using HttpResponse = boost::beast::http::response<boost::beast::http::string_body>;

/// The coroutines run on the thread that is in run(). Destroying a loop destroys its unfinished coroutines, so a server
/// declares whatever they use before its loop.
///
/// An exception ends the connection whose it is, and is written to the standard error; the server goes on. It may come
/// out of a connection's coroutine, or, where one was thrown in the middle of an operation of Asio, out of the context.
class HttpLoop {
 public:
  using Connection = OpenConnections::Connection;
  using Serve = std::function<boost::asio::awaitable<void>(boost::beast::tcp_stream)>;

  /// Listens. Throws an Error of kind `io` if it cannot; `where` is the text of `endpoint` in its message.
  HttpLoop(const boost::asio::ip::tcp::endpoint& endpoint, std::string_view where, const HttpLimits& limits)
      : limits_(limits), failed_(std::string(where)), acceptor_(context_), room_(context_) {
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

  /// Sets what serves a connection: run() accepts them, and starts `serve` for each.
  void start(Serve serve) { serve_ = std::move(serve); }

  /// Serves until stop(), or until drain() is done. Throws nothing.
  void run() {
    for (;;) try {
        if (!accepting_ && !draining_) keep_accepting();
        context_.run();
        return;  // it was stopped: while it accepts there is work
      } catch (...) {
        if (context_.stopped()) return;
        failed_.note(std::current_exception());
        // Memory for accepting may be lacking. An exception of a connection needs no pause.
        if (!accepting_ && !draining_) std::this_thread::sleep_for(retry_pause);
      }
  }
  /// May be called from any thread, also before run(). Whoever waits for an answer is cut off.
  void stop() { context_.stop(); }
  /// Ends in good order: accepts nobody any more, closes the idle connections, and waits until the others have their
  /// answers, for `grace` at most; then run() returns. Streams are woken, and see that the server is draining(). May be
  /// called from any thread.
  void drain(std::chrono::milliseconds grace) {
    boost::asio::post(context_, [this, grace] {
      if (std::exchange(draining_, true)) return;
      spawn(context_, end_in_order(grace), [this](const std::string& why) {
        failed_.note(why);
        stop();
      });
    });
  }
  bool draining() const { return draining_; }

  /// Serves the requests of a connection without encryption.
  template <class Server>
  boost::asio::awaitable<void> serve_plain(boost::beast::tcp_stream stream, Server& server) {
    Connection connection(open_, stream);
    co_await serve(stream, connection, server);
  }

  /// Serves the requests of a connection, one after the other. `server` has
  /// `HttpResponse refusal_of(error_code)`: the answer to a request that was not read (unread_request.hpp), and
  /// `awaitable<std::optional<HttpResponse>> answer(stream, connection, request)`: nullopt: it has been sent, as by an
  /// EventStream; unless that has come to its end, the connection is closed.
  template <class Stream, class Server>
  boost::asio::awaitable<void> serve(Stream& stream, Connection& connection, Server& server) {
    namespace http = boost::beast::http;
    auto& socket = boost::beast::get_lowest_layer(stream);
    RequestReader reader(limits_.head, limits_.body);
    Held held{held_};
    boost::system::error_code error;
    auto token = boost::asio::redirect_error(boost::asio::use_awaitable, error);
    for (bool more = true; more && !draining_;) {
      reader.begin();
      held.reset();
      if (reader.empty()) {
        socket.expires_after(connection.proven ? limits_.idle : limits_.first);
        const std::size_t read = co_await stream.async_read_some(reader.prepare(), token);
        if (error) co_return;
        reader.commit(read);
      }
      connection.begun = true;
      socket.expires_after(limits_.request);
      std::optional<boost::system::error_code> end = reader.parse();
      bool told = false;
      while (!end) {
        if (!told && reader.expects_continue()) {
          told = true;
          co_await boost::asio::async_write(stream, continue_, token);
          if (error) co_return;
        }
        const std::size_t read = co_await stream.async_read_some(reader.prepare(), token);
        if (error == boost::asio::error::eof) {
          end = http::make_error_code(http::error::partial_message);
        } else if (error) {
          co_return;
        } else {
          reader.commit(read);
          end = reader.parse();
          held.add(read);
          if (held_ > limits_.all) end = boost::asio::error::make_error_code(boost::asio::error::no_buffer_space);
        }
      }
      error = *end;
      const HttpRequest& request = reader.request();
      connection.busy = true;
      std::optional<HttpResponse> reply;
      if (error) {
        reply = server.refusal_of(error);
      } else {
        socket.expires_never();  // an answer may take as long as it needs
        reply = co_await server.answer(stream, connection, request);
        if (!reply && !std::exchange(connection.goes_on, false)) co_return;
      }
      more = !error && request.keep_alive() && !draining_;
      if (reply) {
        reply->version(error ? 11 : request.version());
        reply->keep_alive(more);
        reply->prepare_payload();
        if (request.method() == http::verb::head) reply->body().clear();
        socket.expires_after(limits_.answer);
        co_await http::async_write(stream, *reply, token);
        if (error) co_return;
      }
      connection.begun = connection.busy = false;
      connection.proven = more;
      connection.since = OpenConnections::Clock::now();
    }
    reader.begin();
    held.reset();
    // Closing a socket with unread bytes resets the connection, and the client may lose its answer.
    socket.socket().shutdown(boost::asio::ip::tcp::socket::shutdown_send, error);
    socket.expires_after(std::chrono::seconds(5));
    std::string unread(65536, '\0');
    for (std::size_t left = std::size_t{64} << 20; !error && left > 0;) {
      const std::size_t read = co_await socket.async_read_some(boost::asio::buffer(unread), token);
      left -= std::min(left, read);
    }
  }

 private:
  /// Bytes of a request that is being read or answered, in the sum of all.
  struct Held {
    explicit Held(std::uint64_t& all) : sum(all) {}
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() { reset(); }
    void add(std::uint64_t bytes) {
      own += bytes;
      sum += bytes;
    }
    void reset() { sum -= std::exchange(own, 0); }
    std::uint64_t& sum;
    std::uint64_t own = 0;
  };

  void keep_accepting() {
    spawn(context_, accept(std::make_unique<Exists>(accepting_)), [this](const std::string& why) {
      failed_.note(why);
      if (!draining_) keep_accepting();  // if that fails too, run() does it
    });
  }

  boost::asio::awaitable<void> accept([[maybe_unused]] std::unique_ptr<Exists> exists) {
    using boost::asio::ip::tcp;
    boost::system::error_code error;
    auto token = boost::asio::redirect_error(boost::asio::use_awaitable, error);
    for (;;) {
      co_await acceptor_.async_wait(tcp::acceptor::wait_read, token);
      if (!acceptor_.is_open()) co_return;
      if (open_.size() < static_cast<std::size_t>(limits_.connections)) {
        tcp::socket socket = co_await acceptor_.async_accept(token);
        if (!acceptor_.is_open()) co_return;
        if (!error && begin(std::move(socket))) continue;
      }
      // No room, no descriptor or no memory: the next connection waits in the system's queue until another one ends.
      open_.make_room();
      room_.expires_after(retry_pause);
      co_await room_.async_wait(token);
      if (!acceptor_.is_open()) co_return;
    }
  }

  boost::asio::awaitable<void> end_in_order(std::chrono::milliseconds grace) {
    boost::system::error_code ignored;
    acceptor_.close(ignored);  // NOLINT(bugprone-unused-return-value)
    open_.end_idle();
    const auto until = OpenConnections::Clock::now() + grace;
    while (open_.size() > 0 && OpenConnections::Clock::now() < until) {
      room_.expires_at(until);
      co_await room_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
    }
    stop();
  }

  /// Starts to serve a connection. False if that failed; the connection is closed then.
  bool begin(boost::asio::ip::tcp::socket socket) {
    try {
      spawn(context_, serve_(boost::beast::tcp_stream(std::move(socket))),
            [this](const std::string& why) { failed_.note(why); });
      return true;
    } catch (...) {
      failed_.note(std::current_exception());
      return false;
    }
  }

  static constexpr std::chrono::milliseconds retry_pause{100};
  static constexpr std::string_view continue_text = "HTTP/1.1 100 Continue\r\n\r\n";
  const boost::asio::const_buffer continue_{continue_text.data(), continue_text.size()};
  HttpLimits limits_;
  FailedConnections failed_;
  std::uint16_t port_ = 0;
  std::uint64_t held_ = 0;
  Serve serve_;
  bool accepting_ = false, draining_ = false;
  OpenConnections open_{&room_};  // before the context, whose destructor ends the remaining connections
  boost::asio::io_context context_{1};
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer room_;
};

}  // namespace detail
}  // namespace hypertune::inline v0
