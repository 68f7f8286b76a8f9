// Clients that are slow, silent or many.
#include "support/raw_client.hpp"
#include "support/test.hpp"

#include <hypertune/serve/loopback_server.hpp>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <future>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace hypertune;
using namespace std::chrono_literals;
using hypertune::test::RawClient;

namespace {

class Running {
 public:
  Running(HttpAnswerer answer, SlowRequest slow, HttpLimits limits)
      : server_(std::move(answer), 0, std::move(slow), limits), thread_([this] { server_.run(); }) {}
  ~Running() {
    server_.stop();
    thread_.join();
  }
  RawClient client(std::string_view says = {}) const {
    const auto address = server_.address();
    RawClient client(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    client.send(says);
    return client;
  }

 private:
  LoopbackServer server_;
  std::thread thread_;
};

constexpr std::string_view get = "GET /it HTTP/1.1\r\nHost: localhost\r\n\r\n";
HttpAnswer answered(std::string_view, std::string_view, std::string_view) { return {200, "\"answered\""}; }

}  // namespace

TEST_CASE("who sends no whole request in time is left") {
  const Running server(answered, {}, {.first = 100ms, .idle = 100ms, .request = 100ms});
  CHECK(server.client().rest().empty());
  CHECK(server.client("GET /it HT").rest().empty());
  CHECK(server.client("POST /it HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{").rest().empty());
  CHECK_THAT(server.client(get).rest(), Catch::Matchers::EndsWith("\"answered\""));  // and then it is idle for too long
}

TEST_CASE("one more finds room, and no answer is lost for it") {
  std::promise<void> begun, go;
  const auto wait = go.get_future().share();
  const auto slow = [](std::string_view, std::string_view target) { return target == "/slow"; };
  const auto answer = [&](std::string_view, std::string_view target, std::string_view) -> HttpAnswer {
    if (target == "/slow") {
      begun.set_value();
      wait.wait_for(20s);
      return {200, "\"slow\""};
    }
    return {200, "\"answered\""};
  };
  const Running server(answer, slow, {.connections = 4});
  auto waiting = server.client("GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n");
  REQUIRE(begun.get_future().wait_for(20s) == std::future_status::ready);
  auto idle = server.client(get);
  CHECK_THAT(idle.until("\"answered\""), Catch::Matchers::EndsWith("\"answered\""));
  std::vector<RawClient> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(server.client(i % 2 == 0 ? "" : "GET"));
  CHECK_THAT(server.client(get).until("\"answered\""), Catch::Matchers::EndsWith("\"answered\""));
  CHECK(silent.front().rest().empty());
  idle.send(get);  // it has shown what it is: strangers go first
  CHECK_THAT(idle.until("\"answered\""), Catch::Matchers::EndsWith("\"answered\""));
  go.set_value();
  CHECK_THAT(waiting.until("\"slow\""), Catch::Matchers::EndsWith("\"slow\""));
}

TEST_CASE("where all room is taken by clients that are idle, they go, not those who have just come") {
  const Running server(answered, {}, {.connections = 16});
  std::vector<RawClient> idle;
  for (int i = 0; i < 16; ++i) {
    idle.push_back(server.client(get));
    CHECK_THAT(idle.back().until("\"answered\""), Catch::Matchers::EndsWith("\"answered\""));
  }
  std::vector<RawClient> fresh;
  for (int i = 0; i < 3; ++i) fresh.push_back(server.client());  // their requests are on their way
  CHECK(idle[0].rest().empty());
  CHECK(idle[1].rest().empty());
  CHECK(idle[2].rest().empty());
  for (auto& client : fresh) {
    client.send(get);
    CHECK_THAT(client.until("\"answered\""), Catch::Matchers::EndsWith("\"answered\""));
  }
}

TEST_CASE("who waits to be told that its body is wanted is told, once, unless it is too large") {
  const Running server(answered, {}, {.body = 10});
  const auto head = [](int size) {
    return "POST /it HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: "
           "100-continue\r\nContent-Length: " +
           std::to_string(size) + "\r\n\r\n";
  };
  auto client = server.client(head(2));
  CHECK(client.until("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("{");
  client.send("}");
  CHECK_THAT(client.until("\"answered\""), Catch::Matchers::StartsWith("HTTP/1.1 200"));
  client.send(head(2) + "{}");  // it did not wait
  CHECK_THAT(client.until("\"answered\""), Catch::Matchers::StartsWith("HTTP/1.1 200"));
  CHECK(server.client(head(11)).rest().substr(0, 12) == "HTTP/1.1 413");
}

TEST_CASE("a request with a part that is too large is refused, whatever part, and the next one is answered") {
  const Running server(answered, {}, {});
  const std::string large(10'000, 'a'), head = "GET /it HTTP/1.1\r\nHost: localhost\r\n";
  const std::string chunked = head + "Transfer-Encoding: chunked\r\n\r\n";
  for (const auto& request :
       {head + "X: " + large + "\r\n\r\n", head + large + ": x\r\n\r\n", "GET /" + large + " HTTP/1.1\r\n\r\n",
        chunked + "0\r\nX: " + large + "\r\n\r\n", chunked + "3;" + large + "\r\nabc\r\n0\r\n\r\n"}) {
    CHECK(server.client(request).rest().substr(0, 12) == "HTTP/1.1 431");
    CHECK_THAT(server.client(get).until("\"answered\""), Catch::Matchers::EndsWith("\"answered\""));
  }
}
