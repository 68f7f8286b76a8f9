// WorkerStream: the worker's end of the stream to the driver. Calls block.
#pragma once

#include <hypertune/execute/detail/worker_protocol.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::detail {

/// A connected socket. send() may be called from any thread, receive() from one.
class WorkerStream {
 public:
  explicit WorkerStream(int fd) : fd_(fd) {}
  WorkerStream(const WorkerStream&) = delete;
  WorkerStream& operator=(const WorkerStream&) = delete;
  ~WorkerStream() { ::close(fd_); }

  /// Messages that cannot be sent are dropped: receive() tells that the peer is gone.
  void send(const wire::Message& message) {
    const std::lock_guard guard(mutex_);
    out_.clear();
    wire::append(out_, message);
    std::string_view left = out_;
    while (!left.empty()) {
      const ssize_t n = ::send(fd_, left.data(), left.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return;
      left.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  /// The next bytes; empty: the peer has closed the stream; nullopt: nothing came for `timeout` seconds (negative:
  /// waits for ever).
  std::optional<std::string_view> receive(double timeout) {
    for (;;) {
      pollfd poll{.fd = fd_, .events = POLLIN, .revents = 0};
      const int ready = ::poll(&poll, 1, timeout < 0 ? -1 : static_cast<int>(std::min(timeout, 1e6) * 1000) + 1);
      if (ready == 0) return std::nullopt;
      if (ready < 0 && errno == EINTR) continue;
      const ssize_t n = ::recv(fd_, buffer_.data(), buffer_.size(), 0);
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      return std::string_view(buffer_.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
    }
  }

  void shut_down() { ::shutdown(fd_, SHUT_RDWR); }

 private:
  int fd_;
  std::mutex mutex_;
  std::string out_;
  std::array<char, 16384> buffer_{};
};

}  // namespace hypertune::inline v0::detail
