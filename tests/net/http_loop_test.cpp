// A connection that fails ends by itself: the server says so, and goes on.
#include "support/raw_client.hpp"
#include "support/standard_error.hpp"
#include "support/test.hpp"

#include <hypertune/net/event_stream.hpp>
#include <hypertune/net/http_loop.hpp>

#include <arpa/inet.h>
#include <boost/asio/post.hpp>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

using namespace hypertune;
using hypertune::test::RawClient;
namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

struct Answers {
  using Response = hypertune::detail::HttpResponse;
  using Connection = hypertune::detail::HttpLoop::Connection;

  static Response response(std::string body) {
    Response reply(boost::beast::http::status::ok, 11);
    reply.body() = std::move(body);
    return reply;
  }
  static Response refusal_of(const boost::system::error_code&) { return response("refused"); }
};

/// Fails where a request says so.
class Failing : public Answers {
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
  template <class Stream>
  asio::awaitable<std::optional<Response>> answer(Stream&, Connection&, const hypertune::detail::HttpRequest& request) {
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

namespace {

/// Answers when it is told to, and streams.
class Streaming : public Answers {
 public:
  explicit Streaming(const HttpLimits& limits = {})
      : loop_({asio::ip::address_v4::loopback(), 0}, "loopback", limits), release_(loop_.context()) {
    loop_.start([this](boost::beast::tcp_stream stream) { return loop_.serve_plain(std::move(stream), *this); });
    thread_ = std::thread([this] {
      loop_.run();
      over_.set_value();
    });
  }
  Streaming(const Streaming&) = delete;
  Streaming& operator=(const Streaming&) = delete;
  ~Streaming() {
    loop_.stop();
    thread_.join();
  }
  RawClient client(const std::string& says) const {
    RawClient client(loop_.port());
    client.send(says);
    return client;
  }
  std::uint16_t port() const { return loop_.port(); }
  void release() {
    asio::post(loop_.context(), [this] { release_.raise(); });
  }
  void drain(std::chrono::milliseconds grace) { loop_.drain(grace); }
  bool waits() { return waits_.get_future().wait_for(20s) == std::future_status::ready; }
  bool over() { return over_.get_future().wait_for(20s) == std::future_status::ready; }
  /// How many bytes a client has been sent that has then been given up.
  std::size_t flooded() {
    auto sent = flooded_.get_future();
    return sent.wait_for(20s) == std::future_status::ready ? sent.get() : 0;
  }

 private:
  friend class hypertune::detail::HttpLoop;
  template <class Stream>
  asio::awaitable<std::optional<Response>> answer(Stream& stream, Connection& connection,
                                                  const hypertune::detail::HttpRequest& request) {
    const std::string target(request.target());
    if (target == "/slow") {
      waits_.set_value();
      co_await release_.wait();
    }
    if (target != "/events" && target != "/flood") co_return response(target);
    hypertune::detail::EventStream<Stream> events(loop_, stream, connection, request, response(""));
    const std::string large(std::size_t{1} << 20U, 'x');
    bool there = co_await events.begin();
    if (target == "/events" && there) {
      there = co_await events.send("one\n");
      if (there && request.method() == boost::beast::http::verb::post) {
        waits_.set_value();
        co_await events.wakeup().wait();
      }
      if (there) there = co_await events.send("two\n");
      if (there) co_await events.end();
      co_return std::nullopt;
    }
    std::size_t sent = 0;
    while (there) {
      there = co_await events.send(large);
      if (there) sent += large.size();
    }
    flooded_.set_value(sent);
    co_return std::nullopt;
  }

  hypertune::detail::HttpLoop loop_;
  hypertune::detail::Wakeup release_;
  std::promise<void> waits_, over_;
  std::promise<std::size_t> flooded_;
  std::thread thread_;
};

std::string get(const std::string& target, const std::string& more = "") {
  return "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n" + more + "\r\n";
}
const std::string last = "Connection: close\r\n";

}  // namespace

TEST_CASE("requests that come together are answered one after the other") {
  const Streaming server;
  auto client = server.client(get("/a") + get("/b") + get("/c", last));
  for (const auto* body : {"/a", "/b", "/c"}) client.until(body);
  CHECK(client.rest().empty());
}

TEST_CASE("a request for which there is no room is refused, until others have their answers") {
  Streaming server({.all = 100'000});
  const auto post = [](const std::string& target) {
    return "POST " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 60000\r\n\r\n" +
           std::string(60'000, 'x');
  };
  auto waiting = server.client(post("/slow"));
  REQUIRE(server.waits());
  CHECK_THAT(server.client(post("/a")).rest(), Catch::Matchers::EndsWith("refused"));
  CHECK_THAT(server.client(get("/a", last)).rest(), Catch::Matchers::EndsWith("/a"));
  server.release();
  CHECK_THAT(waiting.rest(), Catch::Matchers::EndsWith("/slow"));
  CHECK_THAT(server.client(post("/a")).rest(), Catch::Matchers::EndsWith("/a"));
}

TEST_CASE("a stream has an end, after which its connection is used again") {
  const Streaming server;
  auto client = server.client(get("/events") + get("/a", last));
  CHECK_THAT(client.until("\r\n\r\n"), ContainsSubstring("Transfer-Encoding: chunked"));
  CHECK(client.until("0\r\n\r\n") == "4\r\none\n\r\n4\r\ntwo\n\r\n0\r\n\r\n");
  CHECK_THAT(client.rest(), Catch::Matchers::EndsWith("/a"));
  CHECK_THAT(server.client("GET /events HTTP/1.0\r\n\r\n").rest(), Catch::Matchers::EndsWith("\r\n\r\none\ntwo\n"));
}

TEST_CASE("a client that does not read holds its stream back, and is given up in time") {
  Streaming server({.answer = std::chrono::milliseconds(200)});
  const auto client = server.client(get("/flood"));
  const auto sent = server.flooded();
  CHECK(sent > 0);
  CHECK(sent < std::size_t{64} << 20U);  // what the system's buffers hold
  CHECK_THAT(server.client(get("/a", last)).rest(), Catch::Matchers::EndsWith("/a"));
}

TEST_CASE("a server that drains takes nobody in, and answers what has been asked") {
  Streaming server;
  auto idle = server.client(get("/a"));
  idle.until("/a");
  auto waiting = server.client(get("/slow"));
  REQUIRE(server.waits());
  server.drain(1h);
  CHECK(idle.rest().empty());
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(server.port());
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0);
  ::close(socket);
  server.release();
  const auto answer = waiting.rest();
  CHECK_THAT(answer, ContainsSubstring("Connection: close"));
  CHECK_THAT(answer, Catch::Matchers::EndsWith("/slow"));
  { const RawClient gone = std::move(waiting); }
  CHECK(server.over());
}

TEST_CASE("a stream is told of the drain, and what does not end is cut off") {
  Streaming streaming, stuck;
  auto client = streaming.client("POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
  client.until("one\n");
  REQUIRE(streaming.waits());
  streaming.drain(1h);
  CHECK_THAT(client.rest(), Catch::Matchers::EndsWith("two\n\r\n0\r\n\r\n"));
  auto waiting = stuck.client(get("/slow"));
  REQUIRE(stuck.waits());
  stuck.drain(10ms);
  CHECK(stuck.over());
}
