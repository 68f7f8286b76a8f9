// ChannelSocket: a WebSocket whose messages are channels.
#pragma once

#include "channel_frames.hpp"
#include "request_text.hpp"
#include "wire.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace hypertune::inline v0::k8s::detail {

/// Beast's stream, which costs seconds of the compiler's time, in one file. Used on the io_context's one thread; one
/// read, one write and one ping at a time. Whoever destroys it has ended these.
class ChannelSocket {
 public:
  explicit ChannelSocket(std::shared_ptr<Wire> wire);
  ~ChannelSocket();

  struct Opened {
    int status = 0;             ///< of HTTP; 101: it is open
    std::string body = {};      ///< of another one
    std::string protocol = {};  ///< that the server has chosen
    std::string trouble = {};   ///< one line: there was no answer
  };
  /// `protocols`: those that are understood here, the best first. Within the wire's time.
  asio::awaitable<Opened> open(const RequestText& request, const Headers& headers, const std::string& protocols);

  struct Read {
    std::uint8_t channel = 0;
    std::string_view bytes = {};  ///< in the buffer
    bool over = false;            ///< there is no more
    std::string trouble = {};     ///< why, where it was not closed in order
  };
  /// The next bytes of one channel; throws if it is cancelled.
  asio::awaitable<Read> read(asio::mutable_buffer into);
  /// One message; its first byte is the channel. Empty, or what is wrong; throws if it is cancelled.
  asio::awaitable<std::string> write(asio::const_buffer message);
  asio::awaitable<void> ping();
  /// Says that it is over, and waits for the other side's word. Within the wire's time.
  asio::awaitable<void> close();

  /// Of a monotonic clock: when the other side was heard last (pongs count).
  double heard_at() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hypertune::inline v0::k8s::detail
