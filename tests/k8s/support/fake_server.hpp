// FakeServer: an HTTP server on loopback that does what a test says, also what no server should.
#pragma once

#include <hypertune/detail/descriptor.hpp>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hypertune::inline v0::test {

using hypertune::detail::Descriptor;

/// One connection, on the server's side. Blocks; everything fails when the server ends.
class Peer {
 public:
  explicit Peer(int fd) : fd_(fd) {}
  virtual ~Peer() = default;

  struct Request {
    std::string line, head, body;
    std::string header(const std::string& name) const {
      const auto at = head.find("\r\n" + name + ": ");
      if (at == std::string::npos) return {};
      const auto from = at + name.size() + 4;
      return head.substr(from, head.find("\r\n", from) - from);
    }
  };
  /// false: the client has gone.
  bool read(Request& request) {
    for (;;) {
      if (const auto end = buffer_.find("\r\n\r\n"); end != std::string::npos) {
        request.head = buffer_.substr(0, end + 2);
        request.line = request.head.substr(0, request.head.find("\r\n"));
        const std::string length = request.header("Content-Length");
        const std::size_t size = end + 4 + (length.empty() ? 0 : std::stoul(length));
        if (buffer_.size() >= size) {
          request.body = buffer_.substr(end + 4, size - end - 4);
          buffer_.erase(0, size);
          return true;
        }
      }
      char piece[4096];
      const auto n = receive(piece, sizeof piece);
      if (n <= 0) return false;
      buffer_.append(piece, static_cast<std::size_t>(n));
    }
  }
  void send(std::string_view text) {
    while (!text.empty()) {
      const auto n = transmit(text.data(), text.size());
      if (n <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  void answer(int status, const std::string& body, const std::string& headers = "") {
    send("HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Type: application/json\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  /// A stream of chunks begins.
  void stream() { send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"); }
  void chunk(const std::string& bytes) {
    char size[32];
    std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
    send(size + bytes + "\r\n");
  }
  /// The connection is broken off, with a reset.
  void reset() {
    const linger hard{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  }
  /// Waits until the client has closed the connection.
  void wait_closed() {
    char byte = 0;
    while (receive(&byte, 1) > 0) {}
  }

 protected:
  virtual ssize_t receive(char* data, std::size_t size) { return ::recv(fd_, data, size, 0); }
  virtual ssize_t transmit(const char* data, std::size_t size) { return ::send(fd_, data, size, MSG_NOSIGNAL); }
  int fd_;

 private:
  std::string buffer_;
};

class FakeServer {
 public:
  using Script = std::function<void(Peer&)>;
  using MakePeer = std::function<std::unique_ptr<Peer>(int)>;

  /// `script` is called for each connection, on a thread of its own; when it returns the connection is closed.
  explicit FakeServer(
      Script script, MakePeer make = [](int fd) { return std::make_unique<Peer>(fd); }, std::uint16_t port = 0)
      : script_(std::move(script)),
        make_(std::move(make)),
        listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(listener_.get(), 64) != 0 ||
        ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw std::runtime_error("cannot listen on loopback");
    port_ = ntohs(address.sin_port);
    accepting_ = std::thread([this] { accept_all(); });
  }
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;
  ~FakeServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    accepting_.join();
    {
      const std::lock_guard lock(mutex_);
      for (const auto& fd : open_) ::shutdown(fd.get(), SHUT_RDWR);
    }
    for (auto& thread : threads_) thread.join();
  }

  std::uint16_t port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int connections() const { return connections_; }

 private:
  void accept_all() {
    for (;;) {
      Descriptor fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!fd) return;
      ++connections_;
      const std::lock_guard lock(mutex_);
      open_.push_back(std::move(fd));
      threads_.emplace_back([this, at = std::prev(open_.end())] {
        try {
          if (const auto peer = make_(at->get())) script_(*peer);
        } catch (const std::exception&) {}  // the client sees a closed connection
        const std::lock_guard again(mutex_);
        open_.erase(at);
      });
    }
  }

  Script script_;
  MakePeer make_;
  Descriptor listener_;
  std::uint16_t port_ = 0;
  std::atomic<int> connections_{0};
  std::mutex mutex_;
  std::list<Descriptor> open_;
  std::vector<std::thread> threads_;
  std::thread accepting_;
};

}  // namespace hypertune::inline v0::test
