// A relay between a pod and its driver that can fall silent, or cut what goes through it.
#pragma once

#include <hypertune/detail/descriptor.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

namespace hypertune::inline v0::test {

inline sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

/// Connected to a port of this machine; empty if nobody takes it.
inline hypertune::detail::Descriptor connected_to(std::uint16_t port) {
  hypertune::detail::Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = loopback(port);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return {};
  return socket;
}

class Relay {
 public:
  explicit Relay(std::uint16_t target) : target_(target), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    auto address = loopback(0);
    socklen_t size = sizeof address;
    ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), size);
    ::listen(listener_.get(), 16);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }

  std::uint16_t port() const { return port_; }
  /// Nothing goes through any more, and nothing says so.
  void mute() { mute_ = true; }
  /// What is connected now is closed.
  void cut() { cut_ = true; }

 private:
  using Descriptor = hypertune::detail::Descriptor;

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (cut_.exchange(false)) pairs_.clear();
      std::vector<pollfd> polled{{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
      if (!mute_)
        for (const auto& [from, to] : pairs_) {
          polled.push_back({.fd = from.get(), .events = POLLIN, .revents = 0});
          polled.push_back({.fd = to.get(), .events = POLLIN, .revents = 0});
        }
      if (::poll(polled.data(), polled.size(), 20) <= 0) continue;
      for (std::size_t i = polled.size(); i-- > 1;) {
        if (polled[i].revents == 0) continue;
        auto& pair = pairs_[(i - 1) / 2];
        const int from = polled[i].fd, to = from == pair.first.get() ? pair.second.get() : pair.first.get();
        char bytes[16384];
        const auto n = ::recv(from, bytes, sizeof bytes, 0);
        if (n <= 0)
          ::shutdown(to, SHUT_WR);
        else
          static_cast<void>(::send(to, bytes, static_cast<std::size_t>(n), MSG_NOSIGNAL));
        if (n <= 0) pairs_.erase(pairs_.begin() + static_cast<std::ptrdiff_t>((i - 1) / 2));
        if (n <= 0) break;
      }
      if (polled[0].revents != 0) {
        Descriptor from(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        auto to = connected_to(target_);
        if (from && to) pairs_.emplace_back(std::move(from), std::move(to));
      }
    }
  }

  std::uint16_t target_, port_ = 0;
  Descriptor listener_;
  std::vector<std::pair<Descriptor, Descriptor>> pairs_;
  std::atomic<bool> mute_{false}, cut_{false};
  std::jthread thread_;
};

}  // namespace hypertune::inline v0::test
