// A connection that fails ends by itself: the server says so, and goes on.
#include "support/raw_client.hpp"
#include "support/standard_error.hpp"
#include "support/test.hpp"

#include <hypertune/serve/http_loop.hpp>

#include <boost/asio/post.hpp>

#include <atomic>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

using namespace hypertune;
using hypertune::test::RawClient;
namespace asio = boost::asio;

namespace {

/// Fails where a request says so.
class Failing {
 public:
  Failing() : loop_({asio::ip::address_v4::loopback(), 0}, "loopback", HttpLimits{}) {
    loop_.start([this](boost::beast::tcp_stream stream) {
      if (refusing_.exchange(false)) throw std::bad_alloc();
      return loop_.serve_plain(std::move(stream), *this);
    });
    thread_ = std::thread([this] { loop_.run(); });
  }
  Failing(const Failing&) = delete;
  Failing& operator=(const Failing&) = delete;
  ~Failing() {
    loop_.stop();
    thread_.join();
  }
  std::string ask(const std::string& target) const {
    RawClient client(loop_.port());
    client.send("GET " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    return client.rest();
  }
  void refuse_next() { refusing_ = true; }
  asio::io_context& context() { return loop_.context(); }

 private:
  friend class hypertune::detail::HttpLoop;
  using Response = hypertune::detail::HttpResponse;

  static Response response(std::string body) {
    Response reply(boost::beast::http::status::ok, 11);
    reply.body() = std::move(body);
    return reply;
  }
  static Response refusal_of(const boost::system::error_code&) { return response("refused"); }
  template <class Stream>
  asio::awaitable<std::optional<Response>> answer(Stream&, const hypertune::detail::HttpRequest& request) {
    const std::string target(request.target());
    if (target == "/throw") throw std::runtime_error("it broke");
    if (target == "/length") throw std::length_error("it is too long");
    if (target == "/memory") throw std::bad_alloc();
    if (target == "/number") throw 7;
    co_return response("answered");
  }

  std::atomic<bool> refusing_{false};
  hypertune::detail::HttpLoop loop_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("an exception ends the connection whose it is, is told once, and the others are answered") {
  const auto lines = said([] {
    Failing server;
    for (const auto* target : {"/throw", "/length", "/memory", "/number", "/throw"}) {
      CHECK(server.ask(target).empty());
      CHECK_THAT(server.ask("/"), Catch::Matchers::EndsWith("answered"));
    }
  });
  CHECK(lines == "hypertune: a connection to loopback ended by an error here (it broke); the others go on\n");
}

TEST_CASE("a connection that cannot be served keeps no other one out") {
  const auto lines = said([] {
    Failing server;
    server.refuse_next();
    CHECK(server.ask("/").empty());
    CHECK_THAT(server.ask("/"), Catch::Matchers::EndsWith("answered"));
  });
  CHECK_THAT(lines, ContainsSubstring("std::bad_alloc"));
}

TEST_CASE("an exception that leaves a handler of the context does not end the server") {
  const auto lines = said([] {
    Failing server;
    asio::post(server.context(), [] { throw std::length_error("field value too large"); });
    CHECK_THAT(server.ask("/"), Catch::Matchers::EndsWith("answered"));
    asio::post(server.context(), [] { throw 7; });
    CHECK_THAT(server.ask("/"), Catch::Matchers::EndsWith("answered"));
  });
  CHECK_THAT(lines, ContainsSubstring("field value too large"));
}
