// A small HTTP server on loopback that answers JSON, for programs in other languages.
#pragma once

#include <hypertune/net/browser_rules.hpp>
#include <hypertune/net/http_answer.hpp>
#include <hypertune/net/http_loop.hpp>
#include <hypertune/net/unread_request.hpp>

#include <boost/asio/signal_set.hpp>
#include <boost/asio/thread_pool.hpp>
#include <fmt/format.h>

#include <csignal>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0 {

/// Serves the answers of `answer(method, target, body)`. Listens on 127.0.0.1 only, and answers programs on this
/// machine but not web pages in its browsers: a request must name it as 127.0.0.1 or localhost (other names that
/// resolve to loopback are refused), must not come from another origin, and must declare what it posts as JSON, which
/// no page can do without permission. However many connections are open, or half-open, there is room for one more: the
/// one that was silent for longest is closed. There is one thread, run()'s, and one more for requests that are `slow`.
class LoopbackServer {
 public:
  /// Binds `port` (0: any free one). Error of kind `io` if it is taken.
  LoopbackServer(HttpAnswerer answer, std::uint16_t port, SlowRequest slow = {}, const HttpLimits& limits = {})
      : answer_(std::move(answer)),
        slow_(std::move(slow)),
        max_body_(limits.body),
        loop_({boost::asio::ip::address_v4::loopback(), port}, fmt::format("127.0.0.1:{}", port), limits) {}

  std::string address() const { return fmt::format("http://127.0.0.1:{}", loop_.port()); }

  /// Serves until SIGINT, SIGTERM, SIGHUP (unless that is ignored) or stop(). An exception of `answer` ends it and is
  /// rethrown here, after the request was answered with status 500.
  void run() {
    boost::asio::signal_set signals(loop_.context(), SIGINT, SIGTERM);
    struct sigaction hangup{};
    ::sigaction(SIGHUP, nullptr, &hangup);
    if (hangup.sa_handler != SIG_IGN) signals.add(SIGHUP);  // ignored: nohup
    signals.async_wait([this](const boost::system::error_code& error, int) {
      if (!error) stop();
    });
    loop_.start([this](boost::beast::tcp_stream stream) { return loop_.serve_plain(std::move(stream), *this); });
    loop_.run();
    slow_lane_.join();
    if (error_) std::rethrow_exception(error_);
  }
  /// May be called from any thread.
  void stop() { loop_.stop(); }

 private:
  using Request = detail::HttpRequest;
  using Response = detail::HttpResponse;
  friend class detail::HttpLoop;

  static Response response(int status, std::string body) {
    namespace http = boost::beast::http;
    Response reply(static_cast<http::status>(status), 11);
    reply.set(http::field::content_type, "application/json");
    reply.set(http::field::cache_control, "no-store");
    reply.body() = std::move(body);
    return reply;
  }

  // The answer to something that is not a valid HTTP request.
  Response refusal_of(const boost::system::error_code& error) const {
    const auto [status, why] = detail::unread_request(error, max_body_);
    return response(status, fmt::format(R"({{"error":"{}"}})", why));
  }

  static std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

  bool is_slow(const Request& request) const {
    return slow_ && slow_(view(request.method_string()), view(request.target())) && !refused(request);
  }
  template <class Stream>
  boost::asio::awaitable<std::optional<Response>> answer(Stream&, detail::HttpLoop::Connection&,
                                                         const Request& request) {
    if (!is_slow(request)) co_return handle(request);
    auto work = handle_apart(request);
    Response reply = co_await boost::asio::co_spawn(slow_lane_, std::move(work), boost::asio::use_awaitable);
    co_return reply;
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
    if (auto refusal = refused(request)) return response(refusal->status, std::move(refusal->body));
    try {
      HttpAnswer answer = answer_(view(request.method_string()), view(request.target()), request.body());
      return response(answer.status, std::move(answer.body));
    } catch (...) {
      {
        const std::lock_guard guard(error_mutex_);
        if (!error_) error_ = std::current_exception();
      }
      stop();
      return response(500, R"({"error":"the server has failed; see its message"})");
    }
  }

  HttpAnswerer answer_;
  SlowRequest slow_;
  std::uint64_t max_body_;
  detail::HttpLoop loop_;
  std::mutex error_mutex_;
  std::exception_ptr error_;
  boost::asio::thread_pool slow_lane_{1};  // the last member: its thread uses the others
};

}  // namespace hypertune::inline v0
