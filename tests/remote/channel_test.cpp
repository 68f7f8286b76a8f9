// A stream of messages, and what waits for many of them.
#include "channel.hpp"

#include "support/test.hpp"

#include <hypertune/detail/no_sigpipe.hpp>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

using namespace hypertune;
using remote::detail::Channel;
using remote::detail::DescriptorWatch;
namespace asio = boost::asio;
using hypertune::detail::Descriptor;

namespace {

std::pair<Descriptor, Descriptor> sockets() {
  std::array<int, 2> ends{-1, -1};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}
Descriptor copy_of(const Descriptor& fd) { return Descriptor(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)); }

struct End {
  std::shared_ptr<Channel> channel;
  std::vector<std::string> texts;  // that came
  std::vector<std::string> ends;   // why it ended

  void open(asio::io_context& io, Descriptor in, Descriptor out) {
    channel = std::make_shared<Channel>(io, std::move(in), std::move(out), false);
    Channel::Handlers handlers;
    handlers.message = [this](remote::wire::Message message) {
      auto& text = std::get<Notice>(message).text;
      if (text == "throw") throw std::runtime_error("it cannot be used");
      texts.push_back(std::move(text));
    };
    handlers.ended = [this](const std::string& why) { ends.push_back(why); };
    channel->open(std::move(handlers));
  }
};

void run(asio::io_context& io) {
  io.restart();
  io.run_for(std::chrono::seconds(60));
  CHECK(io.stopped());  // nothing is waited for any more
}

}  // namespace

TEST_CASE("messages longer than a stream takes at once arrive whole and in order, and then the end") {
  asio::io_context io(1);
  End left, right;
  SECTION("by sockets") {
    auto [a, b] = sockets();
    auto a_out = copy_of(a), b_out = copy_of(b);  // one descriptor's end for both ways, as with `ssh` on a socket
    left.open(io, std::move(a), std::move(a_out));
    right.open(io, std::move(b), std::move(b_out));
  }
  SECTION("by pipes") {
    auto there = hypertune::detail::make_pipe(), back = hypertune::detail::make_pipe();
    left.open(io, std::move(back.first), std::move(there.second));
    right.open(io, std::move(there.first), std::move(back.second));
  }
  std::vector<std::string> sent;
  for (const std::size_t size : {std::size_t{3}, std::size_t{8} << 20U, std::size_t{0}, std::size_t{200000}})
    sent.emplace_back(size, static_cast<char>('a' + sent.size()));
  for (const auto& text : sent) left.channel->send(Notice{text});
  CHECK(left.channel->backlog() > std::size_t{8} << 20U);
  right.channel->send(Notice{"back"});
  left.channel->close_when_sent();
  run(io);
  CHECK((right.texts == sent));
  CHECK(right.ends == std::vector<std::string>{Channel::closed_by_peer});
  CHECK(left.ends.empty());
  CHECK(left.channel->closed());
  CHECK(right.channel->closed());
}

TEST_CASE("a stream ends once when its peer goes while much waits to be sent") {
  const hypertune::detail::NoSigpipe no_signal;  // as on the threads of drivers and agents
  asio::io_context io(1);
  End left;
  auto [a, b] = sockets();
  auto out = copy_of(a);
  left.open(io, std::move(a), std::move(out));
  left.channel->send(Notice{std::string(std::size_t{8} << 20U, 'x')});
  while (io.poll() > 0) {}
  CHECK(left.channel->backlog() > 0);
  CHECK(left.ends.empty());
  b = Descriptor();
  run(io);
  CHECK(left.ends.size() == 1);
  CHECK(left.channel->closed());
  left.channel->send(Notice{"more"});
  run(io);
  CHECK(left.ends.size() == 1);
}

TEST_CASE("a message that cannot be used ends its stream, whatever is thrown, and no other") {
  asio::io_context io(1);
  End left, right, other;
  auto [a, b] = sockets();
  auto [c, d] = sockets();
  auto a_out = copy_of(a), b_out = copy_of(b), c_out = copy_of(c);
  left.open(io, std::move(a), std::move(a_out));
  right.open(io, std::move(b), std::move(b_out));
  other.open(io, std::move(c), std::move(c_out));
  left.channel->send(Notice{"first"});
  left.channel->send(Notice{"throw"});
  left.channel->send(Notice{"never"});
  while (io.poll() > 0) {}
  CHECK(right.texts == std::vector<std::string>{"first"});
  CHECK(right.ends == std::vector<std::string>{"it cannot be used"});
  CHECK(left.channel->closed());
  CHECK_FALSE(other.channel->closed());
  other.channel->close();
  run(io);
  CHECK(other.ends.empty());
}

TEST_CASE("a stream asks for pieces after a poke, until there are none") {
  asio::io_context io(1);
  auto [a, b] = sockets();
  auto a_out = copy_of(a), b_out = copy_of(b);
  int asked = 0, left = 0, came = 0;
  const auto sender = std::make_shared<Channel>(io, std::move(a), std::move(a_out), false);
  sender->open({.message = [](const remote::wire::Message&) {},
                .piece = [&]() -> std::optional<remote::wire::Message> {
                  ++asked;
                  if (left == 0) return std::nullopt;
                  --left;
                  return remote::wire::Piece{1, "bytes"};
                },
                .ended = [](const std::string&) {}});
  const auto receiver = std::make_shared<Channel>(io, std::move(b), std::move(b_out), false);
  receiver->open(
      {.message = [&](const remote::wire::Message& m) { came += std::holds_alternative<remote::wire::Piece>(m); },
       .ended = [](const std::string&) {}});
  const auto go_on = [&] {
    while (io.poll() > 0) {}
  };
  for (int i = 0; i < 3; ++i) {
    sender->send(Notice{"text"});
    go_on();
  }
  CHECK(asked == 0);
  left = 3;
  sender->poke();
  go_on();
  CHECK(asked == 4);
  CHECK(came == 3);
  sender->send(Notice{"text"});
  go_on();
  CHECK(asked == 4);
  left = 1;
  sender->poke();
  go_on();
  CHECK(came == 4);
  sender->close();
  receiver->close();
  run(io);
}

TEST_CASE("of descriptors that are ready together, one can end the other") {
  asio::io_context io(1);
  auto& watch = asio::use_service<DescriptorWatch>(io);
  auto [a, b] = sockets();
  auto [c, d] = sockets();
  int calls = 0;
  const auto ready = [&, first = a.get(), second = c.get()] {
    ++calls;
    watch.remove(first);
    watch.remove(second);
  };
  REQUIRE(watch.add(a.get(), EPOLLIN, ready));
  REQUIRE(watch.add(c.get(), EPOLLIN, ready));
  REQUIRE(::write(b.get(), "x", 1) == 1);
  REQUIRE(::write(d.get(), "x", 1) == 1);
  run(io);
  CHECK(calls == 1);

  // What was not taken is told again, also to who comes later.
  int left = 3;
  REQUIRE(watch.add(a.get(), EPOLLIN, [&, fd = a.get()] {
    if (--left == 0) watch.remove(fd);
  }));
  run(io);
  CHECK(left == 0);
}

TEST_CASE("what cannot be waited for ends its stream") {
  asio::io_context io(1);
  End left;
  Descriptor file(::open("/dev/null", O_RDWR | O_CLOEXEC));
  auto out = copy_of(file);
  left.open(io, std::move(file), std::move(out));
  run(io);
  CHECK(left.ends.size() == 1);
}
