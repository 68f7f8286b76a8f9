// Sockets for listening and for connecting.
#pragma once

#include <hypertune/checkpoint/detail/posix_files.hpp>
#include <hypertune/checkpoint/transfer/endpoint.hpp>

#include <chrono>
#include <filesystem>

namespace hypertune::inline v0::detail {

/// A listening socket, non-blocking. Only its owner can use a unix socket; its file is removed with the Listener.
class Listener {
 public:
  /// Error of kind `busy` if somebody listens there, `usage` for an invalid address, `io` otherwise.
  explicit Listener(const UnixSocket& where);
  explicit Listener(const Tcp& where);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  int descriptor() const { return socket_.get(); }
  bool loopback() const { return loopback_; }
  std::uint16_t port() const { return port_; }

 private:
  Descriptor socket_;
  bool loopback_ = true;
  std::uint16_t port_ = 0;
  std::filesystem::path file_;  // of a unix socket
  dev_t device_{};
  ino_t inode_{};
};

/// A connected, non-blocking socket. The Error of kind `io` says why it failed. Waiting ends at the deadline or when
/// `cancel` can be read.
Descriptor connect_to(const Endpoint& where, std::chrono::steady_clock::time_point deadline, int cancel);

/// The next connection, non-blocking; empty if there is none after all.
Descriptor accept_from(int listener);

}  // namespace hypertune::inline v0::detail
