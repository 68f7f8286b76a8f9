// Wire: a connected socket, with or without TLS, with a time limit for every wait.
#pragma once

#include "net/tls.hpp"

#include <hypertune/checkpoint/detail/posix_files.hpp>
#include <hypertune/detail/no_sigpipe.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>
#include <openssl/ssl.h>
#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

namespace hypertune::inline v0::detail {

/// Owns a connected, non-blocking socket. To be used by one thread at a time. A wait ends with `timed_out` at the
/// deadline and with `operation_aborted` as soon as the descriptor `cancel` can be read. Meets Beast's SyncStream.
/// Threads that use it must not die of SIGPIPE: see NoSigpipe.
class Wire {
 public:
  using Clock = std::chrono::steady_clock;
  using ErrorCode = boost::system::error_code;

  Wire() = default;
  Wire(Descriptor socket, int cancel) : socket_(std::move(socket)), cancel_(cancel) {}

  /// Sets one deadline for all following operations together.
  void set_deadline(Clock::time_point deadline) {
    deadline_ = deadline;
    stall_ = {};
  }
  /// Sets a deadline for a transfer. It moves on as long as at least 4 KiB are transferred in `stall`, never past
  /// `last`.
  void set_stall(Clock::duration stall, Clock::time_point last = Clock::time_point::max()) {
    stall_ = stall;
    hard_deadline_ = last;
    since_progress_ = 0;
    deadline_ = std::min(Clock::now() + stall, last);
  }
  void set_cancel(int descriptor) { cancel_ = descriptor; }
  /// Whether data of write_some() may be held back, because more follows at once.
  void set_corked(bool corked) { corked_ = corked; }

  /// The TLS handshake, as the server (`server`) or as a client that accepts only the certificate with this
  /// fingerprint.
  void start_tls(SSL_CTX* context, bool server, const std::string& fingerprint, ErrorCode& error);
  bool encrypted() const { return ssl_ != nullptr; }

  /// Receives at least one byte; an error otherwise (`eof` at the end).
  std::size_t receive(char* data, std::size_t size, ErrorCode& error);
  /// Sends all of it, or returns an error. `more`: more data follows at once, so that small parts share a packet.
  void send_all(const char* data, std::size_t size, bool more, ErrorCode& error);
  /// Sends from a file, without TLS: up to `size` bytes, as many as are accepted at once. Returns 0 at the file's end.
  std::size_t send_file(int file, off_t& offset, std::size_t size, ErrorCode& error);

  /// Waits until something can be read (or TLS has already buffered it).
  void wait_readable(ErrorCode& error);
  /// Waits until `when`, to limit a rate; not past the deadline.
  void wait_until(Clock::time_point when, ErrorCode& error);

  /// The total time that receive() has waited for the peer.
  Clock::duration waited() const { return waited_; }
  int descriptor() const { return socket_.get(); }
  explicit operator bool() const { return static_cast<bool>(socket_); }

  // SyncStream
  template <class Buffers>
  std::size_t read_some(const Buffers& buffers, ErrorCode& error) {
    error = {};
    for (auto it = boost::asio::buffer_sequence_begin(buffers); it != boost::asio::buffer_sequence_end(buffers); ++it) {
      const boost::asio::mutable_buffer buffer(*it);
      if (buffer.size() > 0) return receive(static_cast<char*>(buffer.data()), buffer.size(), error);
    }
    return 0;
  }
  template <class Buffers>
  std::size_t read_some(const Buffers& buffers) {
    ErrorCode error;
    const std::size_t n = read_some(buffers, error);
    if (error) throw boost::system::system_error(error);
    return n;
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers, ErrorCode& error) {
    error = {};
    char together[2048];  // a header consists of many small parts: send them together
    const std::size_t n = boost::asio::buffer_copy(boost::asio::buffer(together), buffers);
    return n == 0 ? 0 : send(together, n, corked_, error);
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers) {
    ErrorCode error;
    const std::size_t n = write_some(buffers, error);
    if (error) throw boost::system::system_error(error);
    return n;
  }

 private:
  std::size_t send(const char* data, std::size_t size, bool more, ErrorCode& error);
  void wait(short events, ErrorCode& error);
  std::size_t advance(std::size_t bytes);
  bool should_retry(int result, ErrorCode& error);  // after an SSL call: true if it must be tried again

  Descriptor socket_;
  OpensslOwner<SSL, SSL_free> ssl_;
  int cancel_ = -1;
  bool corked_ = false;
  Clock::time_point deadline_ = Clock::time_point::max();
  Clock::time_point hard_deadline_ = Clock::time_point::max();
  Clock::duration stall_{};
  std::size_t since_progress_ = 0;  // bytes since the deadline was last moved
  Clock::duration waited_{};
};

/// A flag that poll() can wait for.
class Alarm {
 public:
  Alarm();
  void raise();
  void clear();
  bool raised() const;
  int descriptor() const { return event_.get(); }

 private:
  Descriptor event_;
};

}  // namespace hypertune::inline v0::detail
