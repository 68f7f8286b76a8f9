// WorkerChannel: a connection between a worker's pod and its driver (WebSocket over TLS), used by both sides.
#pragma once

#include <hypertune/net/spawn.hpp>
#include <hypertune/net/wakeup.hpp>

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

/// The version of the protocol on a channel; both sides request it by this name.
inline constexpr std::string_view worker_channel_protocol = "v1.agent.hypertune";
/// The request path of a worker's connection, before the worker's name.
inline constexpr std::string_view worker_channel_path = "/workers/";

/// The type of a message, in its first byte; the numbers are those of the streams of Kubernetes' own exec.
enum class Part : unsigned char {
  input = 0,   ///< driver to pod: standard input of the agent
  output = 1,  ///< pod to driver: standard output of the agent
  errors = 2,  ///< likewise standard error of the agent, until it has written to standard output
  begin = 3,   ///< driver to pod, empty: start an agent
};
inline constexpr std::size_t max_channel_message = std::size_t{256}
                                                   << 10U;  ///< most bytes of a message, including the first

/// Used on its executor's one thread; pending operations keep it alive. why() tells why it ended.
class WorkerChannel : public std::enable_shared_from_this<WorkerChannel> {
 public:
  using Socket = asio::ip::tcp::socket;
  using Stream = beast::websocket::stream<beast::ssl_stream<Socket>>;
  struct Received {
    Received(Part which, std::string_view what) : part(which), bytes(what) {}
    Part part;
    std::string_view bytes;  ///< part of a message, valid until the next receive()
  };

  WorkerChannel(Socket socket, asio::ssl::context& tls);

  /// For the handshakes, which differ between the two sides.
  Stream& stream() { return stream_; }
  Socket& socket() { return beast::get_lowest_layer(stream_); }
  /// To be called once connected, before the handshakes.
  void prepare();
  /// While it exists, the channel is cut after the given number of seconds.
  class Deadline {
   public:
    Deadline(const std::shared_ptr<WorkerChannel>& channel, double seconds, std::string why);

   private:
    asio::steady_timer timer_;
  };

  /// Called after the handshakes: sends a keep-alive message every `ping` seconds, and drops a peer that has been
  /// silent for `silence` seconds. A peer is not silent merely because receive() is not being called.
  void begin(double ping, double silence);
  /// `f` is called once, when the channel ends for any reason.
  void on_over(std::function<void()> f) { on_over_ = std::move(f); }

  /// `piece` has room for one byte before its contents, and `size` counts that byte. Waits until the peer takes it, and
  /// before that for a send already in progress (two coroutines may send). False: the channel has ended.
  asio::awaitable<bool> send(Part part, char* piece, std::size_t size);
  /// Receives the next piece. False: the channel has ended.
  asio::awaitable<bool> receive(Received& into);

  /// Closes the connection properly, within two seconds; `why` is sent to the peer.
  void close(std::string why);
  /// Ends the connection at once.
  void cut(std::string why);
  bool over() const { return over_; }
  bool closing() const { return over_ || closing_; }
  /// Why it ended, or is about to end, as a text for people.
  const std::string& why() const { return why_; }

 private:
  void tick();
  void failed(const ErrorCode& error);

  Stream stream_;
  asio::steady_timer timer_, close_timer_;
  hypertune::detail::Wakeup turn_;
  std::array<char, 16384> in_{};  // TLS records are not larger
  double ping_ = 0, silence_ = 0, heard_ = 0;
  std::string why_;
  std::function<void()> on_over_;
  Part part_ = Part::input;
  bool message_begins_ = true, reading_ = false, writing_ = false, pinging_ = false;
  bool closing_ = false, over_ = false;
};

using LocalSocket = asio::local::stream_protocol::socket;

/// Sends the socket's data as messages of type `part` until the socket or the channel ends. `moved`: set once data
/// came.
asio::awaitable<void> pump(std::shared_ptr<WorkerChannel> channel, LocalSocket& from, Part part, bool* moved);

/// Writes all bytes, waiting while the other end takes no more. False: the other end is gone.
asio::awaitable<bool> write_all(LocalSocket& to, std::string_view bytes);

}  // namespace hypertune::inline v0::k8s
