// ChannelSocket: a WebSocket whose messages belong to channels.
#pragma once

#include "channel_frames.hpp"
#include "http.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace hypertune::inline v0::k8s::detail {

/// Wraps Beast's stream, which takes seconds to compile, in one file. Used on the io_context's one thread; one read,
/// one write and one ping at a time, all of which must have ended before it is destroyed.
class ChannelSocket {
 public:
  explicit ChannelSocket(std::shared_ptr<Wire> wire);
  ~ChannelSocket();

  struct Opened {
    int status = 0;             ///< HTTP status; 101: it is open
    std::string body = {};      ///< of any other answer
    std::string protocol = {};  ///< chosen by the server
    std::string trouble = {};   ///< one line, if there was no answer
  };
  /// `protocols`: those supported here, the preferred one first. Limited by the wire's expiry.
  asio::awaitable<Opened> open(const RequestText& request, const Headers& headers, const std::string& protocols);

  struct Read {
    std::uint8_t channel = 0;
    std::string_view bytes = {};  ///< points into the buffer
    bool over = false;            ///< the connection has ended
    std::string trouble = {};     ///< why, if it was not closed properly
  };
  /// Reads the next bytes of one channel; throws if it is cancelled.
  asio::awaitable<Read> read(asio::mutable_buffer into);
  /// Sends one message; its first byte is the channel. Returns an error text, or empty; throws if it is cancelled.
  asio::awaitable<std::string> write(asio::const_buffer message);
  asio::awaitable<void> ping();
  /// Closes the WebSocket and waits for the other side's closing frame. Limited by the wire's expiry.
  asio::awaitable<void> close();

  /// Monotonic time at which something was last received (pongs count).
  double heard_at() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hypertune::inline v0::k8s::detail
