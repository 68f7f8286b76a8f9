// Clients that are slow, silent or many.
#include "support/test.hpp"

#include <hypertune/serve/loopback_server.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

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

namespace {

class Client {
 public:
  explicit Client(const std::string& address) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval bound{.tv_sec = 20, .tv_usec = 0};
    REQUIRE(::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound) == 0);
    REQUIRE(::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  }
  Client(Client&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Client() {
    if (fd_ >= 0) ::close(fd_);
  }
  void send(std::string_view text) const {
    REQUIRE(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
  }
  /// All that comes until the server closes the connection, or until `last` has come.
  std::string hear(std::string_view last = {}) const {
    std::string heard;
    char piece[4096];
    while (last.empty() || !heard.ends_with(last)) {
      const ssize_t got = ::recv(fd_, piece, sizeof piece, 0);
      if (got < 0 && errno == ECONNRESET) return heard;
      REQUIRE(got >= 0);  // else it was silent for 20 s
      if (got == 0) return heard;
      heard.append(piece, static_cast<std::size_t>(got));
    }
    return heard;
  }

 private:
  int fd_;
};

class Running {
 public:
  Running(HttpAnswerer answer, SlowRequest slow, LoopbackLimits limits)
      : server_(std::move(answer), 0, std::move(slow), limits), thread_([this] { server_.run(); }) {}
  ~Running() {
    server_.stop();
    thread_.join();
  }
  Client client(std::string_view says = {}) const {
    Client client(server_.address());
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
  CHECK(server.client().hear().empty());
  CHECK(server.client("GET /it HT").hear().empty());
  CHECK(server.client("POST /it HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{").hear().empty());
  CHECK_THAT(server.client(get).hear(), Catch::Matchers::EndsWith("\"answered\""));  // and then it is idle for too long
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
  const auto waiting = server.client("GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n");
  REQUIRE(begun.get_future().wait_for(20s) == std::future_status::ready);
  const auto idle = server.client(get);
  CHECK_THAT(idle.hear("\"answered\""), Catch::Matchers::EndsWith("\"answered\""));
  std::vector<Client> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(server.client(i % 2 == 0 ? "" : "GET"));
  CHECK_THAT(server.client(get).hear("\"answered\""), Catch::Matchers::EndsWith("\"answered\""));
  CHECK(silent.front().hear().empty());
  idle.send(get);  // it has shown what it is: strangers go first
  CHECK_THAT(idle.hear("\"answered\""), Catch::Matchers::EndsWith("\"answered\""));
  go.set_value();
  CHECK_THAT(waiting.hear("\"slow\""), Catch::Matchers::EndsWith("\"slow\""));
}
