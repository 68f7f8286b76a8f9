// A client's connection to a CheckpointServer, which is not trusted.
#pragma once

#include <hypertune/checkpoint/transfer/endpoint.hpp>
#include <hypertune/checkpoint/transfer/impl/target.hpp>
#include <hypertune/checkpoint/transfer/impl/wire.hpp>
#include <hypertune/error.hpp>

#include <boost/beast/core/flat_buffer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hypertune::inline v0::detail {

/// The connection is lost, or cannot be made: another try may help.
class ConnectionLost : public Error {
 public:
  explicit ConnectionLost(const std::string& message) : Error(Errc::io, message) {}
};

struct PeerLimits {
  std::chrono::milliseconds connect{10'000};
  std::chrono::milliseconds stall{30'000};
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

/// For one thread.
class Peer {
 public:
  /// Connects. ConnectionLost, or an Error of kind `usage` if the certificate is not the right one.
  Peer(const Endpoint& where, const PeerLimits& limits, int cancel);

  /// Sends a request; answers come in the order of requests. ConnectionLost otherwise.
  void ask(const Target& target) { send(target, nullptr, false); }
  void ask(const Target& target, ByteRange range, bool zstd) { send(target, &range, zstd); }

  struct Head {
    unsigned status = 0;
    std::uint64_t length = 0;  ///< of the body
    bool zstd = false;
    std::string range;  ///< Content-Range
  };
  /// The next answer's head. Error of kind `protocol` for what no CheckpointServer sends (a body without a length, or
  /// longer than `most`), `usage` for 401.
  Head receive_head(std::uint64_t most);
  /// Up to `size` bytes of its body, which has `left` still to come; at least one.
  std::size_t receive(char* data, std::size_t size);
  /// All of a body.
  std::string receive_text(const Head& head);

  /// ask() and receive. Status 404 and 410 are Errors of kind `corrupt` that say what the peer says.
  std::pair<unsigned, std::string> fetch(const Target& target, std::uint64_t most);
  /// Throws what a head with another status than 200, 202 and 206 means, with the body's first line.
  [[noreturn]] void refuse(const Head& head);

  Wire& wire() { return wire_; }
  /// Bytes per second while it waited for the peer; 0: not known yet.
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

/// Waits a little longer each time, up to `limits.deadline`. False if `cancel` can be read or time is up.
bool back_off(int attempt, const PeerLimits& limits, int cancel);

}  // namespace hypertune::inline v0::detail
