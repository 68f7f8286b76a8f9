// CallLine: a connection between a worker's pod and its driver, of either side: WebSocket over TLS.
#pragma once

#include "wakeup.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/role.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <boost/beast/websocket/stream.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::k8s {

namespace asio = boost::asio;
namespace beast = boost::beast;
using ErrorCode = boost::system::error_code;

/// The version of what is said over a line: both sides ask for it by this name.
inline constexpr std::string_view call_protocol = "v1.agent.hypertune";
/// Where a worker calls, before its name.
inline constexpr std::string_view call_path = "/workers/";

/// What a message is, by its first byte: the numbers are those of the streams of Kubernetes' own exec.
enum class Part : unsigned char {
  input = 0,   ///< driver to pod: for the agent's standard input
  output = 1,  ///< pod to driver: of its standard output
  errors = 2,  ///< likewise of its standard error, until it has said something on the other one
  begin = 3,   ///< driver to pod, empty: start an agent
};
inline constexpr std::size_t call_message = std::size_t{256} << 10U;  ///< bytes of a message at most, with the first

/// On its executor's one thread; lives as long as what it waits for. What ends it is known by why().
class CallLine : public std::enable_shared_from_this<CallLine> {
 public:
  using Socket = asio::ip::tcp::socket;
  using Stream = beast::websocket::stream<beast::ssl_stream<Socket>>;
  struct Received {
    Received(Part which, std::string_view what) : part(which), bytes(what) {}
    Part part;
    std::string_view bytes;  ///< part of a message, until the next receive()
  };

  CallLine(Socket socket, asio::ssl::context& tls);

  /// For the handshakes, which are the two sides' own.
  Stream& stream() { return stream_; }
  Socket& socket() { return beast::get_lowest_layer(stream_); }
  /// Once it is connected, before them.
  void prepare();
  /// While it lives, the line is cut when so many seconds have passed.
  class Deadline {
   public:
    Deadline(const std::shared_ptr<CallLine>& line, double seconds, std::string why);

   private:
    asio::steady_timer timer_;
  };

  /// The handshakes are over: it says every `ping` seconds that it lives, and gives up a peer that has been silent for
  /// `silence`. A peer that says nothing while nobody asks it (see receive()) is not silent.
  void begin(double ping, double silence);
  /// Called once, when it ends, by whatever.
  void on_over(std::function<void()> f) { on_over_ = std::move(f); }

  /// `piece` has room for a byte before its contents; `size` counts that, too. Waits until the
  /// peer takes it, and before that for another one that sends (there may be two at once). False: the line has ended.
  asio::awaitable<bool> send(Part part, char* piece, std::size_t size);
  /// What comes next. False: the line has ended.
  asio::awaitable<bool> receive(Received& into);

  /// Ends it in order, within two seconds; `why` is told to the peer.
  void close(std::string why);
  /// Ends it at once.
  void cut(std::string why);
  bool over() const { return over_; }
  bool closing() const { return over_ || closing_; }
  /// Why it ended, or is about to: for people.
  const std::string& why() const { return why_; }

 private:
  void tick();
  void failed(const ErrorCode& error);

  Stream stream_;
  asio::steady_timer timer_, close_timer_;
  Wakeup turn_;
  std::array<char, 16384> in_{};  // no record of TLS has more
  double ping_ = 0, silence_ = 0, heard_ = 0;
  std::string why_;
  std::function<void()> on_over_;
  Part part_ = Part::input;
  bool message_begins_ = true, reading_ = false, writing_ = false, pinging_ = false;
  bool closing_ = false, over_ = false;
};

using LocalSocket = asio::local::stream_protocol::socket;

/// Sends what comes from the socket as such messages until it ends or the line does. `moved`: set once something came.
asio::awaitable<void> pump(std::shared_ptr<CallLine> line, LocalSocket& from, Part part, bool* moved);

/// All of it, waiting as long as the other end takes no more. False: that is gone.
asio::awaitable<bool> write_all(LocalSocket& to, std::string_view bytes);

}  // namespace hypertune::inline v0::k8s
