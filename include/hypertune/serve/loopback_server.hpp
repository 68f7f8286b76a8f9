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
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0 {

/// How long a LoopbackServer waits for its clients, and for how many of them.
struct LoopbackLimits {
  int connections = 256;                            ///< at once; what is missed least makes room for the next one
  std::chrono::milliseconds first{30'000};          ///< from the beginning of a connection to its first request
  std::chrono::milliseconds idle{10 * 60 * 1'000};  ///< between requests
  std::chrono::milliseconds request{30'000};        ///< from the first byte of a request to its last
  std::chrono::milliseconds answer{30'000};         ///< until a client has taken its answer
  std::uint64_t body = 1 << 20;                     ///< bytes
};

/// Serves what `answer(method, target, body)` says. Listens on 127.0.0.1 only, and answers programs of this machine,
/// not the pages of its browsers: a request has to name it by its address (a name that resolves to loopback does not
/// reach it), must not come from another origin, and says of what it posts that it is JSON, which no page can do
/// unasked. However many connections are open, or half-open, there is room for one more: that which was silent for
/// longest is closed. One thread, run()'s, and one more for requests that are `slow`.
class LoopbackServer {
 public:
  /// Binds `port` (0: any free one). Error of kind `io` when it is taken.
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
  ~LoopbackServer() { ending_ = true; }

  std::string address() const { return fmt::format("http://127.0.0.1:{}", acceptor_.local_endpoint().port()); }

  /// Serves until SIGINT, SIGTERM, SIGHUP (unless that is ignored) or stop(). What `answer` throws ends it and is
  /// thrown here, after an answer of 500.
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
  /// Any thread.
  void stop() { context_.stop(); }

 private:
  using Stream = boost::beast::tcp_stream;
  using Request = boost::beast::http::request<boost::beast::http::string_body>;
  using Response = boost::beast::http::response<boost::beast::http::string_body>;
  using Clock = std::chrono::steady_clock;

  // One in the list of those that are open, for as long as it is served.
  struct Connection {
    Connection(LoopbackServer& s, Stream& stream)
        : server(s), socket(stream), at(s.open_.insert(s.open_.end(), this)) {}
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    ~Connection() {
      server.open_.erase(at);
      if (!server.ending_) server.room_.cancel();
    }
    LoopbackServer& server;
    Stream& socket;
    Clock::time_point since = Clock::now();  // of its beginning, or of its last request
    bool proven = false;                     // it has sent a whole request
    bool busy = false;                       // one of its requests is being answered
    bool closed = false;
    std::list<Connection*>::iterator at;
  };

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
      // No room, or no descriptor: the next one stays in the system's queue until another has ended.
      make_room();
      room_.expires_after(std::chrono::milliseconds(100));
      co_await room_.async_wait(token);
    }
  }

  /// Closes the connection that is missed least: of those that have never sent a request the oldest, else the one that
  /// has been idle for longest; none that waits for its answer.
  void make_room() {
    Connection* chosen = nullptr;
    for (Connection* each : open_) {
      if (each->closed) return;  // there will be room in a moment
      if (each->busy) continue;
      if (chosen == nullptr || std::pair(each->proven, each->since) < std::pair(chosen->proven, chosen->since))
        chosen = each;
    }
    if (chosen == nullptr) return;
    chosen->closed = true;
    chosen->socket.close();
  }

  boost::asio::awaitable<void> serve(Stream stream) {
    namespace http = boost::beast::http;
    Connection connection(*this, stream);
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
    // What is closed with bytes unread is reset, and the client may lose its answer.
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

  // To what is no request as HTTP has them.
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

  /// Why a request is not answered: it may come from a page that a browser of this machine shows.
  static std::optional<HttpAnswer> refused(const Request& request) {
    namespace http = boost::beast::http;
    const auto is = [](boost::beast::string_view text, std::string_view name) {
      return boost::beast::iequals(text, boost::beast::string_view(name.data(), name.size()));
    };
    const auto only_one = [&](http::field field) { return request.count(field) <= 1; };
    if (!only_one(http::field::host) || !only_one(http::field::origin) || !only_one(http::field::content_type) ||
        request.count("Sec-Fetch-Site") > 1)
      return HttpAnswer{400, R"({"error":"Host, Origin, Sec-Fetch-Site and Content-Type are given once at most"})"};

    const auto whole = request[http::field::host];
    const auto host = whole.substr(0, whole.rfind(':'));
    if (!is(host, "127.0.0.1") && !is(host, "localhost"))
      return HttpAnswer{403, R"({"error":"this server answers to 127.0.0.1 and localhost only"})"};

    // A program sends neither; a browser sends at least one with what another page asks for, and no page can unset
    // them.
    const auto origin = request.find(http::field::origin);
    const auto site = request.find("Sec-Fetch-Site");
    if ((origin != request.end() && !is(origin->value(), fmt::format("http://{}", view(whole)))) ||
        (site != request.end() && !is(site->value(), "same-origin") && !is(site->value(), "none")))
      return HttpAnswer{403,
                        R"({"error":"this server does not answer the pages of other sites: ask it from a program, )"
                        R"(without the headers Origin and Sec-Fetch-Site"})"};

    if (request.method() == http::verb::post) {
      const auto type = request[http::field::content_type];
      auto media = type.substr(0, type.find(';'));
      while (!media.empty() && (media.back() == ' ' || media.back() == '\t')) media.remove_suffix(1);
      if (!is(media, "application/json"))
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
  std::list<Connection*> open_;  // before what destroys the connections that are left
  bool ending_ = false;
  boost::asio::io_context context_{1};
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer room_;
  std::mutex error_mutex_;
  std::exception_ptr error_;
  boost::asio::thread_pool slow_lane_{1};  // last: its thread uses the others
};

}  // namespace hypertune::inline v0
