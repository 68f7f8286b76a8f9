// A client's connection to a CheckpointServer. The server is not trusted.
#pragma once

#include "target.hpp"
#include "wire.hpp"

#include <hypertune/checkpoint/transfer/endpoint.hpp>
#include <hypertune/error.hpp>

#include <boost/beast/core/flat_buffer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hypertune::inline v0::detail {

/// The connection is lost or cannot be made: trying again may help.
class ConnectionLost : public Error {
 public:
  explicit ConnectionLost(const std::string& message) : Error(Errc::io, message) {}
};

struct PeerLimits {
  std::chrono::milliseconds connect{10'000};
  std::chrono::milliseconds stall{30'000};
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

/// To be used by one thread.
class Peer {
 public:
  /// Connects. Throws ConnectionLost, or an Error of kind `usage` if the certificate is wrong.
  Peer(const Endpoint& where, const PeerLimits& limits, int cancel);

  /// Sends a request; answers arrive in the order of requests. Throws ConnectionLost.
  void ask(const Target& target) { send(target, nullptr, false); }
  void ask(const Target& target, ByteRange range, bool zstd) { send(target, &range, zstd); }

  struct Head {
    unsigned status = 0;
    std::uint64_t length = 0;  ///< of the body
    bool zstd = false;
    std::string range;  ///< Content-Range
  };
  /// The head of the next answer. Error of kind `protocol` for what no CheckpointServer sends (a body without a length,
  /// or longer than `most`), `usage` for 401.
  Head receive_head(std::uint64_t most);
  /// Receives up to `size` bytes of the body, at least one. `size` must not exceed what is left of it.
  std::size_t receive(char* data, std::size_t size);
  /// Receives the whole body.
  std::string receive_text(const Head& head);

  /// ask() and receive. Status 404 and 410 are Errors of kind `corrupt` with the peer's message.
  std::pair<unsigned, std::string> fetch(const Target& target, std::uint64_t most);
  /// Throws the Error for a status other than 200, 202 and 206, with the body's first line.
  [[noreturn]] void refuse(const Head& head);

  Wire& wire() { return wire_; }
  /// Bytes per second while waiting for the peer; 0: not known yet.
  double rate() const;

 private:
  void send(const Target& target, const ByteRange* range, bool zstd);
  [[noreturn]] void lost(const Wire::ErrorCode& error);

  std::string name_, host_;
  const Secret token_;
  PeerLimits limits_;
  Wire wire_;
  boost::beast::flat_buffer buffer_;
  std::uint64_t received_ = 0;
};

/// Waits, longer for each attempt, up to `limits.deadline`. False if `cancel` can be read or time is up.
bool back_off(int attempt, const PeerLimits& limits, int cancel);

}  // namespace hypertune::inline v0::detail
