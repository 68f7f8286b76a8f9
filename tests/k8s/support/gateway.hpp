// What stands between a client and the servers of this machine: a proxy that takes CONNECT, or a relay.
#pragma once

#include <hypertune/detail/descriptor.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace hypertune::inline v0::test {

class Gateway {
 public:
  struct Options {
    bool ipv6 = false;                              ///< at ::1 rather than 127.0.0.1
    std::map<std::string, std::string> hosts = {};  ///< IPv4 addresses by the names that it knows
    std::string login = {};                         ///< what Proxy-Authorization must say; empty: nothing
    std::string relay_to = {};                      ///< "127.0.0.1:6443": no proxy, all goes there
  };

  explicit Gateway(Options options)
      : options_(std::move(options)),
        listener_(::socket(options_.ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_storage place{};
    socklen_t size = options_.ipv6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    if (options_.ipv6) {
      auto& address = reinterpret_cast<sockaddr_in6&>(place);
      address.sin6_family = AF_INET6;
      address.sin6_addr = in6addr_loopback;
    } else {
      auto& address = reinterpret_cast<sockaddr_in&>(place);
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    auto* const address = reinterpret_cast<sockaddr*>(&place);
    if (::bind(listener_.get(), address, size) != 0 || ::listen(listener_.get(), 64) != 0)
      throw std::runtime_error("a gateway cannot listen");
    ::getsockname(listener_.get(), address, &size);
    port_ = ntohs(options_.ipv6 ? reinterpret_cast<sockaddr_in6&>(place).sin6_port
                                : reinterpret_cast<sockaddr_in&>(place).sin_port);
    thread_ = std::jthread([this](const std::stop_token& stop) { accept_all(stop); });
  }
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  static bool has_ipv6() {
    const hypertune::detail::Descriptor socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_loopback;
    return socket && ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }

  std::uint16_t port() const { return port_; }
  /// How many connections have got through.
  int connected() const { return connected_; }
  /// Cuts all that are there now.
  void cut() { ++cuts_; }

 private:
  using Descriptor = hypertune::detail::Descriptor;

  static bool wait_for(int fd, short what) {
    pollfd polled{.fd = fd, .events = what, .revents = 0};
    return ::poll(&polled, 1, 20) > 0;
  }
  static bool send_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
      const auto n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  static Descriptor connect_to(const std::string& ip, const std::string& port) {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port.c_str())));
    if (::inet_pton(AF_INET, ip.c_str(), &address.sin_addr) != 1 ||
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return {};
    return socket;
  }

  void accept_all(const std::stop_token& stop) {
    std::list<std::jthread> connections;  // joined here
    while (!stop.stop_requested()) {
      if (!wait_for(listener_.get(), POLLIN)) continue;
      Descriptor client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client) continue;
      connections.emplace_back(
          [this, cuts = cuts_.load(), client = std::move(client)](const std::stop_token& over) mutable {
            const Descriptor server = options_.relay_to.empty() ? pass(client.get(), over) : relayed();
            if (!server) return;
            ++connected_;
            while (!over.stop_requested() && cuts == cuts_ && pump(client.get(), server.get())) {}
          });
    }
  }

  Descriptor relayed() const {
    const auto colon = options_.relay_to.rfind(':');
    return connect_to(options_.relay_to.substr(0, colon), options_.relay_to.substr(colon + 1));
  }

  // The server that a CONNECT asks for; none: it was refused.
  Descriptor pass(int client, const std::stop_token& over) const {
    std::string head;
    constexpr std::size_t most = 8192;
    while (head.find("\r\n\r\n") == std::string::npos) {
      if (over.stop_requested() || head.size() > most) return {};
      if (!wait_for(client, POLLIN)) continue;
      char byte = 0;  // nothing of what follows
      if (::recv(client, &byte, 1, 0) != 1) return {};
      head += byte;
    }
    const auto refuse = [&](std::string_view status) {
      send_all(client, "HTTP/1.1 " + std::string(status) + "\r\nContent-Length: 0\r\n\r\n");
      return Descriptor();
    };
    if (!options_.login.empty() && head.find("Proxy-Authorization: " + options_.login + "\r\n") == std::string::npos)
      return refuse("407 Proxy Authentication Required");
    constexpr std::string_view word = "CONNECT ";
    const auto space = head.find(' ', word.size()), colon = head.rfind(':', space);
    if (!head.starts_with(word) || space == std::string::npos || colon < word.size()) return refuse("400 Bad Request");
    const auto known = options_.hosts.find(head.substr(word.size(), colon - word.size()));
    if (known == options_.hosts.end()) return refuse("403 Forbidden");
    auto server = connect_to(known->second, head.substr(colon + 1, space - colon - 1));
    if (!server) return refuse("502 Bad Gateway");
    if (!send_all(client, "HTTP/1.1 200 Connection established\r\n\r\n")) return {};
    return server;
  }

  // False: one side has ended.
  static bool pump(int client, int server) {
    std::array<pollfd, 2> polled{
        {{.fd = client, .events = POLLIN, .revents = 0}, {.fd = server, .events = POLLIN, .revents = 0}}};
    if (::poll(polled.data(), polled.size(), 20) <= 0) return true;
    for (const auto& [from, to] : {std::pair(0U, server), std::pair(1U, client)}) {
      if (polled[from].revents == 0) continue;
      std::array<char, 16384> bytes;
      const auto n = ::recv(polled[from].fd, bytes.data(), bytes.size(), 0);
      if (n <= 0 || !send_all(to, {bytes.data(), static_cast<std::size_t>(n)})) return false;
    }
    return true;
  }

  Options options_;
  std::uint16_t port_ = 0;
  std::atomic<int> connected_ = 0, cuts_ = 0;
  Descriptor listener_;
  std::jthread thread_;  // last: it ends first
};

}  // namespace hypertune::inline v0::test
