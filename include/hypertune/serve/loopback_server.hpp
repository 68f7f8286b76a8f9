// A small HTTP server on loopback that answers JSON, for programs in other languages.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/serve/http_answer.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune {

/// Serves what `answer(method, target, body)` says. Listens on 127.0.0.1 only, and answers only requests that name it
/// so (a web page that has a name resolve to loopback cannot reach it). One thread, run()'s, and one more for requests
/// that are `slow`.
class LoopbackServer {
 public:
  /// Binds `port` (0: any free one). Error of kind `io` when it is taken.
  LoopbackServer(HttpAnswerer answer, std::uint16_t port, SlowRequest slow = {})
      : answer_(std::move(answer)), slow_(std::move(slow)), acceptor_(context_) {
    using boost::asio::ip::tcp;
    const tcp::endpoint endpoint(boost::asio::ip::address_v4::loopback(), port);
    try {
      acceptor_.open(endpoint.protocol());
      acceptor_.set_option(tcp::acceptor::reuse_address(true));
      acceptor_.bind(endpoint);
      acceptor_.listen();
    } catch (const boost::system::system_error& e) {
      fail(Errc::io, "cannot listen on 127.0.0.1:{}: {}; choose another --port, or 0 for any", port,
           e.code().message());
    }
  }

  std::string address() const { return fmt::format("http://127.0.0.1:{}", acceptor_.local_endpoint().port()); }

  /// Serves until SIGINT, SIGTERM or stop(). What `answer` throws ends it and is thrown here, after an answer of 500.
  void run() {
    boost::asio::signal_set signals(context_, SIGINT, SIGTERM);
    signals.async_wait([this](const boost::system::error_code& error, int) {
      if (!error) context_.stop();
    });
    boost::asio::co_spawn(context_, accept(), boost::asio::detached);
    context_.run();
    slow_lane_.join();
    if (error_) std::rethrow_exception(error_);
  }
  /// Any thread.
  void stop() { context_.stop(); }

 private:
  using Stream = boost::beast::tcp_stream;
  static constexpr std::uint64_t body_limit = 1 << 20;
  static constexpr int most_connections = 256;

  boost::asio::awaitable<void> accept() {
    for (;;) {
      boost::system::error_code error;
      auto token = boost::asio::redirect_error(boost::asio::use_awaitable, error);
      boost::asio::ip::tcp::socket socket = co_await acceptor_.async_accept(token);
      if (error) co_return;
      if (connections_ >= most_connections) continue;  // refused by being closed
      boost::asio::co_spawn(context_, serve(Stream(std::move(socket))), boost::asio::detached);
    }
  }

  boost::asio::awaitable<void> serve(Stream stream) {
    namespace http = boost::beast::http;
    struct Count {
      int& n;
      explicit Count(int& c) : n(c) { ++n; }
      ~Count() { --n; }
    } count(connections_);
    boost::beast::flat_buffer buffer;
    bool more = true;
    while (more) {
      http::request_parser<http::string_body> parser;
      parser.body_limit(body_limit);
      stream.expires_after(std::chrono::minutes(10));
      boost::system::error_code error;
      auto token = boost::asio::redirect_error(boost::asio::use_awaitable, error);
      co_await http::async_read(stream, buffer, parser, token);
      if (error == http::error::body_limit) {
        http::response<http::string_body> refusal = response(413, "{\"error\":\"the body is too large\"}", 11);
        refusal.keep_alive(false);
        co_await http::async_write(stream, refusal, token);
        break;
      }
      if (error) break;
      const auto& request = parser.get();
      http::response<http::string_body> reply;
      if (is_slow(request)) {
        auto work = handle_apart(request);
        reply = co_await boost::asio::co_spawn(slow_lane_, std::move(work), boost::asio::use_awaitable);
      } else {
        reply = handle(request);
      }
      reply.keep_alive(request.keep_alive());
      reply.prepare_payload();
      stream.expires_after(std::chrono::seconds(30));
      co_await http::async_write(stream, reply, token);
      more = !error && reply.keep_alive();
    }
    boost::system::error_code ignored;
    stream.socket().shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
  }

  static boost::beast::http::response<boost::beast::http::string_body> response(int status, std::string body,
                                                                                unsigned version) {
    namespace http = boost::beast::http;
    http::response<http::string_body> reply(static_cast<http::status>(status), version);
    reply.set(http::field::content_type, "application/json");
    reply.set(http::field::cache_control, "no-store");
    reply.body() = std::move(body);
    reply.prepare_payload();
    return reply;
  }

  static std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

  bool is_slow(const boost::beast::http::request<boost::beast::http::string_body>& request) const {
    return slow_ && slow_(view(request.method_string()), view(request.target()));
  }
  boost::asio::awaitable<boost::beast::http::response<boost::beast::http::string_body>> handle_apart(
      const boost::beast::http::request<boost::beast::http::string_body>& request) {
    co_return handle(request);
  }
  boost::beast::http::response<boost::beast::http::string_body> handle(
      const boost::beast::http::request<boost::beast::http::string_body>& request) {
    std::string_view host = view(request[boost::beast::http::field::host]);
    if (const auto colon = host.rfind(':'); colon != std::string_view::npos) host = host.substr(0, colon);
    if (host != "127.0.0.1" && host != "localhost")
      return response(403, "{\"error\":\"this server answers to 127.0.0.1 and localhost only\"}", request.version());
    try {
      HttpAnswer answer = answer_(view(request.method_string()), view(request.target()), request.body());
      return response(answer.status, std::move(answer.body), request.version());
    } catch (...) {
      {
        const std::lock_guard guard(error_mutex_);
        if (!error_) error_ = std::current_exception();
      }
      context_.stop();
      return response(500, "{\"error\":\"the server has failed; see its message\"}", request.version());
    }
  }

  HttpAnswerer answer_;
  SlowRequest slow_;
  boost::asio::io_context context_{1};
  boost::asio::ip::tcp::acceptor acceptor_;
  int connections_ = 0;
  std::mutex error_mutex_;
  std::exception_ptr error_;
  boost::asio::thread_pool slow_lane_{1};  // last: its thread uses the others
};

}  // namespace hypertune
