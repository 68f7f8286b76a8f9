// A small HTTP server on loopback that answers JSON, for programs in other languages.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/serve/browser_rules.hpp>
#include <hypertune/serve/http_answer.hpp>
#include <hypertune/serve/open_connections.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0 {

/// The limits of a LoopbackServer: times that it waits for its clients, and sizes.
struct LoopbackLimits {
  int connections = 256;                            ///< at once; the least needed one is closed for the next one
  std::chrono::milliseconds first{30'000};          ///< from the beginning of a connection to its first request
  std::chrono::milliseconds idle{10 * 60 * 1'000};  ///< between requests
  std::chrono::milliseconds request{30'000};        ///< from the first byte of a request to its last
  std::chrono::milliseconds answer{30'000};         ///< until a client has received its answer
  std::uint64_t body = 1 << 20;                     ///< bytes
};

/// Serves the answers of `answer(method, target, body)`. Listens on 127.0.0.1 only, and answers programs on this
/// machine but not web pages in its browsers: a request must name it as 127.0.0.1 or localhost (other names that
/// resolve to loopback are refused), must not come from another origin, and must declare what it posts as JSON, which
/// no page can do without permission. However many connections are open, or half-open, there is room for one more: the
/// one that was silent for longest is closed. There is one thread, run()'s, and one more for requests that are `slow`.
class LoopbackServer {
 public:
  /// Binds `port` (0: any free one). Error of kind `io` if it is taken.
  LoopbackServer(HttpAnswerer answer, std::uint16_t port, SlowRequest slow = {}, LoopbackLimits limits = {})
      : answer_(std::move(answer)), slow_(std::move(slow)), limits_(limits), acceptor_(context_), room_(context_) {
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

  LoopbackServer(const LoopbackServer&) = delete;
  LoopbackServer& operator=(const LoopbackServer&) = delete;
  ~LoopbackServer() { open_.end(); }

  std::string address() const { return fmt::format("http://127.0.0.1:{}", acceptor_.local_endpoint().port()); }

  /// Serves until SIGINT, SIGTERM, SIGHUP (unless that is ignored) or stop(). An exception of `answer` ends it and is
  /// rethrown here, after the request was answered with status 500.
  void run() {
    boost::asio::signal_set signals(context_, SIGINT, SIGTERM);
    struct sigaction hangup{};
    ::sigaction(SIGHUP, nullptr, &hangup);
    if (hangup.sa_handler != SIG_IGN) signals.add(SIGHUP);  // ignored: nohup
    signals.async_wait([this](const boost::system::error_code& error, int) {
      if (!error) context_.stop();
    });
    boost::asio::co_spawn(context_, accept(), boost::asio::detached);
    context_.run();
    slow_lane_.join();
    if (error_) std::rethrow_exception(error_);
  }
  /// May be called from any thread.
  void stop() { context_.stop(); }

 private:
  using Stream = boost::beast::tcp_stream;
  using Request = boost::beast::http::request<boost::beast::http::string_body>;
  using Response = boost::beast::http::response<boost::beast::http::string_body>;
  using Clock = detail::OpenConnections::Clock;

  boost::asio::awaitable<void> accept() {
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
          auto served = serve(Stream(std::move(socket)));
          boost::asio::co_spawn(context_, std::move(served), boost::asio::detached);
          continue;
        }
      }
      // No room, or no free descriptor: the next connection stays in the system's queue until another one has ended.
      open_.make_room();
      room_.expires_after(std::chrono::milliseconds(100));
      co_await room_.async_wait(token);
    }
  }

  boost::asio::awaitable<void> serve(Stream stream) {
    namespace http = boost::beast::http;
    detail::OpenConnections::Connection connection(open_, stream);
    boost::beast::flat_buffer buffer;
    boost::system::error_code error;
    auto token = boost::asio::redirect_error(boost::asio::use_awaitable, error);
    for (bool more = true; more;) {
      http::request_parser<http::string_body> parser;
      parser.body_limit(limits_.body);
      if (buffer.size() == 0) {
        stream.expires_after(connection.proven ? limits_.idle : limits_.first);
        const std::size_t read = co_await stream.async_read_some(buffer.prepare(4096), token);
        if (error) co_return;
        buffer.commit(read);
      }
      stream.expires_after(limits_.request);
      co_await http::async_read(stream, buffer, parser, token);
      if (error && error.category() != http::make_error_code(http::error::bad_method).category()) co_return;
      const auto& request = parser.get();
      Response reply;
      connection.busy = true;
      if (error) {
        reply = refusal_of(error);
      } else if (is_slow(request)) {
        auto work = handle_apart(request);
        reply = co_await boost::asio::co_spawn(slow_lane_, std::move(work), boost::asio::use_awaitable);
      } else {
        reply = handle(request);
      }
      more = !error && request.keep_alive();
      reply.keep_alive(more);
      reply.prepare_payload();
      if (request.method() == http::verb::head) reply.body().clear();
      stream.expires_after(limits_.answer);
      co_await http::async_write(stream, reply, token);
      if (error) co_return;
      connection.busy = false;
      connection.proven = more;
      connection.since = Clock::now();
    }
    // Reads the rest first: a socket that is closed with unread bytes is reset, and the client may lose its answer.
    stream.socket().shutdown(boost::asio::ip::tcp::socket::shutdown_send, error);
    stream.expires_after(std::chrono::seconds(5));
    for (std::size_t left = std::size_t{64} << 20; !error && left > 0;) {
      buffer.clear();
      const std::size_t read = co_await stream.async_read_some(buffer.prepare(65536), token);
      left -= std::min(left, read);
    }
  }

  static Response response(int status, std::string body, unsigned version) {
    namespace http = boost::beast::http;
    Response reply(static_cast<http::status>(status), version);
    reply.set(http::field::content_type, "application/json");
    reply.set(http::field::cache_control, "no-store");
    reply.body() = std::move(body);
    reply.prepare_payload();
    return reply;
  }

  // The answer to something that is not a valid HTTP request.
  Response refusal_of(const boost::system::error_code& error) const {
    namespace http = boost::beast::http;
    if (error == http::error::body_limit)
      return response(413, fmt::format(R"({{"error":"the body is too large: at most {} bytes"}})", limits_.body), 11);
    if (error == http::error::header_limit) return response(431, R"({"error":"the headers are too large"})", 11);
    return response(400, fmt::format(R"({{"error":"this is no HTTP request: {}"}})", error.message()), 11);
  }

  static std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

  bool is_slow(const Request& request) const {
    return slow_ && slow_(view(request.method_string()), view(request.target())) && !refused(request);
  }
  boost::asio::awaitable<Response> handle_apart(const Request& request) { co_return handle(request); }

  /// Why a request is refused: it may come from a page in a browser on this machine.
  static std::optional<HttpAnswer> refused(const Request& request) {
    namespace http = boost::beast::http;
    static const ServerNames names;
    if (auto refusal = detail::refused_origin(request, names)) return refusal;

    if (request.method() == http::verb::post) {
      const auto type = request[http::field::content_type];
      auto media = type.substr(0, type.find(';'));
      while (!media.empty() && (media.back() == ' ' || media.back() == '\t')) media.remove_suffix(1);
      if (!detail::same_name(media, "application/json"))
        return HttpAnswer{
            415, R"({"error":"a POST needs the header 'Content-Type: application/json', with an empty body, too; )"
                 R"(curl: -H 'Content-Type: application/json', or --json in place of -d"})"};
    }
    return std::nullopt;
  }

  Response handle(const Request& request) {
    if (auto refusal = refused(request)) return response(refusal->status, std::move(refusal->body), request.version());
    try {
      HttpAnswer answer = answer_(view(request.method_string()), view(request.target()), request.body());
      return response(answer.status, std::move(answer.body), request.version());
    } catch (...) {
      {
        const std::lock_guard guard(error_mutex_);
        if (!error_) error_ = std::current_exception();
      }
      context_.stop();
      return response(500, R"({"error":"the server has failed; see its message"})", request.version());
    }
  }

  HttpAnswerer answer_;
  SlowRequest slow_;
  LoopbackLimits limits_;
  detail::OpenConnections open_{&room_};  // outlives context_, which destroys the remaining connections
  boost::asio::io_context context_{1};
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer room_;
  std::mutex error_mutex_;
  std::exception_ptr error_;
  boost::asio::thread_pool slow_lane_{1};  // the last member: its thread uses the others
};

}  // namespace hypertune::inline v0
