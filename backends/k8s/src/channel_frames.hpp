// ChannelFrames: what the messages of exec, attach and port-forward hold (vN.channel.k8s.io). No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::k8s::detail {

namespace channel {
constexpr std::uint8_t in = 0, out = 1, err = 2, status = 3, size = 4;
constexpr std::uint8_t close = 255;  ///< v5: the second byte is the channel that ends
}  // namespace channel

/// The first byte of each message is its channel; messages come in pieces.
class ChannelReader {
 public:
  struct Piece {
    std::uint8_t channel = 0;
    std::string_view bytes;
  };
  /// Takes the next piece of a message; nullopt: there is nothing in it but the channel. `ends`: it is the message's
  /// last.
  std::optional<Piece> take(std::string_view bytes, bool ends) {
    if (!channel_ && !bytes.empty()) {
      channel_ = static_cast<std::uint8_t>(bytes.front());
      bytes.remove_prefix(1);
    }
    std::optional<Piece> piece;
    if (channel_ && !bytes.empty()) piece = Piece{*channel_, bytes};
    if (ends) channel_.reset();
    return piece;
  }

 private:
  std::optional<std::uint8_t> channel_;
};

/// How a command ended, as the status channel says.
struct CommandEnd {
  bool known = false;   ///< it said so; false: the connection was lost before
  bool exited = false;  ///< it ran, and ended with `code`
  int code = 0;
  int status = 0;            ///< of HTTP, where it could not be run
  std::string reason = {};   ///< of a Status object
  std::string message = {};  ///< one line
};

/// What a stream's errors begin with where its command could not be started.
inline constexpr std::string_view not_run = "the command could not be run: ";

/// What the status channel says, whole. Anything that is no Status is a message of a command that could not be run.
CommandEnd read_command_end(std::string_view text);

}  // namespace hypertune::inline v0::k8s::detail
