// ChannelFrames: the contents of the messages of exec, attach and port-forward (vN.channel.k8s.io). No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::k8s::detail {

namespace channel {
constexpr std::uint8_t in = 0, out = 1, err = 2, status = 3, size = 4;
constexpr std::uint8_t close = 255;  ///< v5: the second byte is the channel that is closed
}  // namespace channel

/// Splits messages, whose first byte is their channel; a message may come in several pieces.
class ChannelReader {
 public:
  struct Piece {
    std::uint8_t channel = 0;
    std::string_view bytes;
  };
  /// Takes the next piece of a message; nullopt: it held nothing but the channel. `ends`: it is the message's last
  /// piece.
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

/// How a command ended, according to the status channel.
struct CommandEnd {
  bool known = false;   ///< the status was received; false: the connection was lost before
  bool exited = false;  ///< it ran, and ended with `code`
  int code = 0;
  int status = 0;            ///< HTTP status, if it could not be run
  std::string reason = {};   ///< of the Status object
  std::string message = {};  ///< one line
};

/// The prefix of the text on a stream's `err` if its command could not be started.
inline constexpr std::string_view not_run = "the command could not be run: ";

/// Parses the whole text of the status channel. Text that is no Status is the message of a command that could not be
/// run.
CommandEnd read_command_end(std::string_view text);

}  // namespace hypertune::inline v0::k8s::detail
