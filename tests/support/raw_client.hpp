// RawClient: a client of a server on loopback that sends and receives what a test says, byte by byte.
#pragma once

#include "support/test.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::test {

class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval bound{.tv_sec = 30, .tv_usec = 0};
    REQUIRE(::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound) == 0);
    REQUIRE(::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  }
  RawClient(RawClient&& other) noexcept : fd_(std::exchange(other.fd_, -1)), heard_(std::move(other.heard_)) {}
  ~RawClient() {
    if (fd_ >= 0) ::close(fd_);
  }
  void send(std::string_view text) const {
    for (std::size_t at = 0; at < text.size();) {
      const auto sent = ::send(fd_, text.data() + at, text.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return;  // it was refused in the middle
      at += static_cast<std::size_t>(sent);
    }
  }
  /// All until the server closes.
  std::string rest() {
    while (more()) {}
    return std::exchange(heard_, {});
  }
  /// All up to and with `last`.
  std::string until(std::string_view last) {
    std::size_t at = 0;
    while ((at = heard_.find(last)) == std::string::npos) REQUIRE(more());
    std::string text = heard_.substr(0, at + last.size());
    heard_.erase(0, at + last.size());
    return text;
  }

 private:
  bool more() {
    char piece[16384];
    const ssize_t got = ::recv(fd_, piece, sizeof piece, 0);
    if (got < 0 && errno == ECONNRESET) return false;
    REQUIRE(got >= 0);  // else it was silent for 30 s
    heard_.append(piece, static_cast<std::size_t>(got));
    return got > 0;
  }
  int fd_;
  std::string heard_;
};

}  // namespace hypertune::inline v0::test
