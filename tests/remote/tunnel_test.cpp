// Connections to the other side's server, as streams of a channel.
#include "tunnel.hpp"

#include "file_limit.hpp"
#include "support/test.hpp"

#include <hypertune/detail/socket_pair.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

using namespace hypertune;
using namespace hypertune::test;
using remote::detail::Channel;
using remote::detail::Tunnel;
namespace asio = boost::asio;
using hypertune::detail::Descriptor;

namespace {

struct Side {
  std::shared_ptr<Channel> channel;
  std::shared_ptr<Tunnel> tunnel;
  std::string ended;

  Side(asio::io_context& io, const Descriptor& socket, bool driver)
      : channel(std::make_shared<Channel>(io, copy_of(socket), copy_of(socket), false)),
        tunnel(std::make_shared<Tunnel>(io, channel, driver)) {
    Channel::Handlers handlers;
    handlers.message = [this](remote::wire::Message message) {
      std::visit(
          [this](auto& m) {
            if constexpr (requires { tunnel->on(m); }) tunnel->on(m);
          },
          message);
    };
    handlers.piece = [this] {
      return tunnel->next_in_turn([]() -> std::optional<remote::wire::Message> { return {}; });
    };
    handlers.ended = [this](const std::string& why) { ended = why; };
    channel->open(std::move(handlers));
  }

 private:
  static Descriptor copy_of(const Descriptor& fd) { return Descriptor(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)); }
};

/// Two sides, the second of which serves one connection after the other.
struct Pair {
  asio::io_context io{1};
  std::pair<Descriptor, Descriptor> sockets = hypertune::detail::make_socket_pair();
  Side left{io, sockets.first, true}, right{io, sockets.second, false};
  Descriptor served;

  Pair() {
    right.tunnel->accept([this](int socket) { served = Descriptor(socket); });
  }
  ~Pair() {
    for (auto* side : {&left, &right}) {
      side->tunnel->close();
      side->channel->close();
    }
    io.restart();
    io.run_for(std::chrono::seconds(20));
  }
  void turn() {
    io.restart();
    io.run_for(std::chrono::milliseconds(1));
    while (io.poll() > 0) {}
  }
};

/// What comes next, or an empty text at the end.
std::string next_of(Pair& pair, const Descriptor& socket) {
  pollfd polled{.fd = socket.get(), .events = POLLIN, .revents = 0};
  for (int i = 0; i < 10'000 && ::poll(&polled, 1, 0) == 0; ++i) pair.turn();
  char bytes[64];
  const ssize_t n = ::recv(socket.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  REQUIRE(n >= 0);
  return {bytes, static_cast<std::size_t>(n)};
}

}  // namespace

TEST_CASE("bytes go both ways through a tunnel, to the end of the connection") {
  Pair pair;
  Descriptor socket(pair.left.tunnel->connect());
  REQUIRE(::send(socket.get(), "there", 5, MSG_NOSIGNAL) == 5);
  for (int i = 0; i < 10'000 && !pair.served; ++i) pair.turn();
  REQUIRE(pair.served);
  CHECK(next_of(pair, pair.served) == "there");
  REQUIRE(::send(pair.served.get(), "back", 4, MSG_NOSIGNAL) == 4);
  CHECK(next_of(pair, socket) == "back");
  pair.served = Descriptor();
  CHECK(next_of(pair, socket).empty());
}

TEST_CASE("at the limit of open files, who asks for a connection is refused or sees its end, and others go on") {
  if (!can_do_without_files) return;
  const int more = GENERATE(0, 1, 2, 3, 4, 5);
  INFO("descriptors that are left: " << more);
  Pair pair;
  Descriptor socket;
  {
    const FileLimit limit(more);
    try {
      const int fd = pair.left.tunnel->connect();
      CHECK(fd >= 0);
      socket = Descriptor(fd);
    } catch (const Error& e) {
      CHECK(e.code() == Errc::io);
      CHECK_THAT(e.what(), ContainsSubstring("Too many open files"));
    }
    const FileLimit none(0);  // the rest of the way needs some of them, too
    CHECK_NOTHROW(pair.turn());
  }
  if (socket) CHECK(next_of(pair, socket).empty());
  CHECK(pair.left.ended.empty());
  CHECK(pair.right.ended.empty());
  socket = Descriptor(pair.left.tunnel->connect());
  REQUIRE(::send(socket.get(), "there", 5, MSG_NOSIGNAL) == 5);
  for (int i = 0; i < 10'000 && !pair.served; ++i) pair.turn();
  REQUIRE(pair.served);
  CHECK(next_of(pair, pair.served) == "there");
}
