// Requests per second of HttpLoop and of a bare server of Beast (its own example http_server_async, with one thread), on
// a constant answer. A client with several connections asks both in turn; each has at most one request under way on a
// connection. Beside the rate, which the client and other programs share in, stands the server's processor time for a
// request.
#include "bare_server.hpp"

#include <hypertune/net/http_loop.hpp>

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace hypertune;
using hypertune::benchmark::Bare;
using hypertune::benchmark::constant_answer;
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;

namespace {

const tcp::endpoint anywhere(asio::ip::address_v4::loopback(), 0);
double thread_seconds() {
  rusage use{};
  ::getrusage(RUSAGE_THREAD, &use);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

class Own {
 public:
  Own() : loop_(anywhere, "loopback", HttpLimits{}) {
    loop_.start([this](beast::tcp_stream stream) { return loop_.serve_plain(std::move(stream), *this); });
  }
  std::uint16_t port() const { return loop_.port(); }
  void run() { loop_.run(); }
  void stop() { loop_.stop(); }

 private:
  friend class hypertune::detail::HttpLoop;
  using Response = hypertune::detail::HttpResponse;
  static Response refusal_of(const boost::system::error_code&) { return constant_answer(); }
  template <class Stream>
  asio::awaitable<std::optional<Response>> answer(Stream&, hypertune::detail::HttpLoop::Connection&,
                                                  const hypertune::detail::HttpRequest&) {
    co_return constant_answer();
  }
  hypertune::detail::HttpLoop loop_;
};

struct Measured {
  double rate = 0, microseconds = 0;  // requests a second; of the server's processor time for one
};

/// Asks for `seconds`. Returns how many answers came.
std::uint64_t ask(std::uint16_t port, std::size_t connections, double seconds) {
  const std::string request =
      "POST /v2/models/digits/infer HTTP/1.1\r\nHost: localhost\r\nUser-Agent: benchmark\r\n"
      "Content-Type: application/json\r\nContent-Length: 16\r\n\r\n{\"inputs\":[0.5]}";
  asio::io_context context;
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  std::vector<tcp::socket> sockets;
  std::map<int, std::size_t> pending;
  for (std::size_t i = 0; i < connections; ++i) {
    auto& socket = sockets.emplace_back(context);
    socket.connect({asio::ip::address_v4::loopback(), port});
    socket.set_option(tcp::no_delay(true));
    epoll_event event{.events = EPOLLIN, .data = {.fd = socket.native_handle()}};
    ::epoll_ctl(set, EPOLL_CTL_ADD, socket.native_handle(), &event);
    asio::write(socket, asio::buffer(request));
  }
  std::uint64_t answers = 0;
  std::size_t size = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::vector<epoll_event> events(connections);
  char piece[4096];
  while (std::chrono::steady_clock::now() < until) {
    const int n = ::epoll_wait(set, events.data(), static_cast<int>(events.size()), 1000);
    for (int i = 0; i < n; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      const auto got = ::recv(fd, piece, sizeof piece, 0);
      if (got <= 0) std::abort();
      if (size == 0) size = static_cast<std::size_t>(got);  // the first answer comes as a whole: it is small
      auto& here = pending[fd] += static_cast<std::size_t>(got);
      if (here < size) continue;
      here -= size;
      ++answers;
      if (::send(fd, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size()))
        std::abort();
    }
  }
  ::close(set);
  return answers;
}

template <class Server>
Measured measure(std::size_t connections, double seconds) {
  Server server;
  double processor = 0;
  std::thread thread([&] {
    server.run();
    processor = thread_seconds();
  });
  const auto begin = std::chrono::steady_clock::now();
  const auto answers = static_cast<double>(ask(server.port(), connections, seconds));
  const std::chrono::duration<double> lasted = std::chrono::steady_clock::now() - begin;
  server.stop();
  thread.join();
  return {answers / lasted.count(), 1e6 * processor / answers};
}

double median(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0.3;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 60;
  const std::size_t connections = argc > 3 ? static_cast<std::size_t>(std::atoi(argv[3])) : 32;
  std::vector<double> bare, own, bare_time, own_time, ratios, time_ratios;
  for (int i = 0; i < rounds; ++i) {
    Measured a, b;  // each is the first one as often as the other
    if (i % 2 == 0) a = measure<Bare>(connections, seconds);
    b = measure<Own>(connections, seconds);
    if (i % 2 == 1) a = measure<Bare>(connections, seconds);
    bare.push_back(a.rate);
    own.push_back(b.rate);
    bare_time.push_back(a.microseconds);
    own_time.push_back(b.microseconds);
    ratios.push_back(b.rate / a.rate);
    time_ratios.push_back(a.microseconds / b.microseconds);
  }
  fmt::print("{} connections, medians of {} rounds of {} s each\n", connections, rounds, seconds);
  fmt::print("bare Beast: {:.0f} requests/s, {:.2f} us of its processor time each\n", median(bare), median(bare_time));
  fmt::print("HttpLoop:   {:.0f} requests/s, {:.2f} us of its processor time each\n", median(own), median(own_time));
  fmt::print("ratio:      {:.3f} of its requests/s, {:.3f} by processor time\n", median(ratios), median(time_ratios));
}
