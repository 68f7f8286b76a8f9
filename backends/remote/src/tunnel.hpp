// Tunnel: connections to the other side's CheckpointServer, as streams of a Channel.
#pragma once

#include "channel.hpp"

#include <hypertune/checkpoint/detail/posix_files.hpp>
#include <hypertune/detail/socket_pair.hpp>
#include <hypertune/error.hpp>

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace hypertune::inline v0::remote::detail {

/// Both ends of each stream are ends of socket pairs, one of which is used by a fetch or a server: no port is opened,
/// and there is no file that other users could open. A stream holds at most one piece that waits to be sent, and at
/// most the channel's window of received data. Must be used on the io_context's one thread, except connect().
class Tunnel : public std::enable_shared_from_this<Tunnel> {
 public:
  /// Serves a peer at the other end of a socket.
  using Accept = std::function<void(int socket)>;

  Tunnel(asio::io_context& io, std::shared_ptr<Channel> channel, bool driver)
      : io_(io), channel_(std::move(channel)), next_(driver ? 2 : 1) {}

  /// Sets what is done with streams that the peer opens; without it they are ended at once.
  void accept(Accept accept) { accept_ = std::move(accept); }

  /// A socket connected to the peer's server. May be called from any thread. Error of kind `io` if there is no
  /// connection.
  int connect() {
    if (closed_) fail(Errc::io, "the connection is lost");
    const auto [near, far] = hypertune::detail::make_socket_pair();
    // Everything that needs a descriptor is done here, where an error has somebody to handle it.
    const auto stream = stream_of(far);
    const int socket = duplicate_of(near);
    asio::post(io_, [self = weak_from_this(), stream] {
      const auto tunnel = self.lock();
      if (!tunnel || tunnel->closed_) return;  // who has the socket sees its end
      const std::uint64_t id = tunnel->next_;
      tunnel->next_ += 2;
      tunnel->channel_->send(wire::StreamOpen{id});
      tunnel->begin(id, stream);
    });
    return socket;
  }

  void on(const wire::StreamOpen& m) {
    if (m.stream % 2 == next_ % 2 || streams_.contains(m.stream)) fail(Errc::protocol, "a stream's number is wrong");
    std::size_t theirs = 0;
    for (const auto& [id, stream] : streams_) theirs += id % 2 == m.stream % 2 ? 1 : 0;
    if (theirs >= wire::max_streams) fail(Errc::protocol, "too many streams at once");
    try {
      if (!accept_) fail(Errc::io, "nothing is served here");
      const auto [near, far] = hypertune::detail::make_socket_pair();
      const auto stream = stream_of(near);
      accept_(duplicate_of(far));
      begin(m.stream, stream);
    } catch (const std::exception&) { channel_->send(wire::StreamEnd{m.stream}); }
  }
  void on(wire::StreamPiece& m) {
    const auto found = streams_.find(m.stream);
    if (found == streams_.end()) return channel_->consumed(m.bytes.size());  // the stream has ended on this side
    if (found->second->incoming.empty())
      found->second->incoming = std::move(m.bytes);
    else
      found->second->incoming += m.bytes;
    write(found->second);
  }
  void on(const wire::StreamEnd& m) {
    const auto found = streams_.find(m.stream);
    if (found == streams_.end()) return;
    found->second->peer_over = true;
    write(found->second);
  }

  /// The next piece of a stream or of a whole copy (`next_whole()`), alternately, so that neither delays the other.
  template <class NextWhole>
  std::optional<wire::Message> next_in_turn(const NextWhole& next_whole) {
    streams_turn_ = !streams_turn_;
    for (int i = 0; i < 2; ++i, streams_turn_ = !streams_turn_) {
      if (streams_turn_) {
        if (auto piece = next_piece()) return std::move(*piece);
      } else if (auto piece = next_whole()) {
        return std::move(*piece);
      }
    }
    return std::nullopt;
  }

  /// Ends all streams; data that still arrives is ignored.
  void close() {
    closed_ = true;
    accept_ = nullptr;
    for (auto& [id, stream] : std::exchange(streams_, {})) end(*stream);
  }

 private:
  struct Stream {
    explicit Stream(asio::io_context& io) : socket(io) {}
    std::uint64_t id = 0;
    asio::local::stream_protocol::socket socket;
    std::array<char, wire::piece_size> buffer;
    std::size_t ready = 0;  // bytes in the buffer that wait to be sent
    std::string incoming, writing;
    bool peer_over = false, over = false;
  };
  using StreamPointer = std::shared_ptr<Stream>;

  // The next piece to send; streams take turns.
  std::optional<wire::StreamPiece> next_piece() {
    auto next = streams_.upper_bound(last_);
    for (std::size_t i = 0; i < streams_.size(); ++i, ++next) {
      if (next == streams_.end()) next = streams_.begin();
      const auto stream = next->second;
      if (stream->ready == 0) continue;
      last_ = stream->id;
      wire::StreamPiece piece{stream->id, std::string(stream->buffer.data(), stream->ready)};
      stream->ready = 0;
      read(stream);
      return piece;
    }
    return std::nullopt;
  }

  // A stream without a number. May be called from any thread.
  StreamPointer stream_of(const Descriptor& end) {
    auto stream = std::make_shared<Stream>(io_);
    const int own = duplicate_of(end);
    boost::system::error_code error;
    stream->socket.assign(asio::local::stream_protocol(), own, error);
    if (!error) return stream;
    ::close(own);
    fail(Errc::io, "cannot open a stream to an agent: {}", error.message());
  }
  void begin(std::uint64_t id, const StreamPointer& stream) {
    stream->id = id;
    streams_[id] = stream;
    read(stream);
  }

  void read(const StreamPointer& stream) {
    stream->socket.async_read_some(
        asio::buffer(stream->buffer),
        [self = shared_from_this(), stream](const boost::system::error_code& error, std::size_t n) {
          if (stream->over) return;
          if (error) return self->drop(stream, true);
          stream->ready = n;
          self->channel_->poke();
        });
  }
  // By value, here and below: drop() erases the map's own pointer.
  void write(StreamPointer stream) {
    if (!stream->writing.empty()) return;
    if (stream->incoming.empty()) {
      if (stream->peer_over) drop(stream, false);
      return;
    }
    stream->writing.swap(stream->incoming);
    asio::async_write(stream->socket, asio::buffer(stream->writing),
                      [self = shared_from_this(), stream](const boost::system::error_code& error, std::size_t) {
                        if (stream->over) return;
                        if (error) return self->drop(stream, !stream->peer_over);
                        self->channel_->consumed(stream->writing.size());
                        stream->writing.clear();
                        self->write(stream);
                      });
  }
  void drop(StreamPointer stream, bool tell) {
    streams_.erase(stream->id);
    channel_->consumed(end(*stream));
    if (tell) channel_->send(wire::StreamEnd{stream->id});
  }
  // Returns the number of bytes that are no longer held.
  static std::size_t end(Stream& stream) {
    stream.over = true;
    boost::system::error_code ignored;
    stream.socket.close(ignored);
    return stream.incoming.size() + stream.writing.size();
  }

  asio::io_context& io_;
  const std::shared_ptr<Channel> channel_;
  Accept accept_;
  std::uint64_t next_;
  std::map<std::uint64_t, StreamPointer> streams_;
  std::uint64_t last_ = 0;     // the stream of the last piece sent
  bool streams_turn_ = false;  // whether the last turn was a stream's
  std::atomic<bool> closed_{false};
};

}  // namespace hypertune::inline v0::remote::detail
