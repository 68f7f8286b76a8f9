// Channel: one stream of host protocol messages over a pair of descriptors, carried by coroutines.
#pragma once

#include "host_protocol.hpp"

#include <hypertune/checkpoint/posix_files.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/detail/run_clock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace hypertune::inline v0::remote::detail {

namespace asio = boost::asio;
using hypertune::detail::Descriptor;

inline Seconds steady_now() { return hypertune::detail::steady_seconds(); }

/// The last moment up to `at` of a grid that all share: timers of a thousand hosts that need not be exact expire
/// together, and wake the thread a few times instead of a thousand times.
inline Seconds on_grid(Seconds at, double grid) { return std::floor(at / grid) * grid; }

/// What a coroutine waits for and another one, on the same thread, raises. A raise that comes first is not lost.
class Signal {
 public:
  explicit Signal(asio::io_context& io) : timer_(io) {}
  void raise() {
    raised_ = true;
    timer_.cancel();
  }
  /// Returns at a raise(), or after `seconds` (negative: never).
  asio::awaitable<void> wait(double seconds = -1) {
    if (!raised_) {
      if (seconds < 0)
        timer_.expires_at(std::chrono::steady_clock::time_point::max());
      else
        timer_.expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
            std::chrono::duration<double>(std::min(seconds, 1e6))));
      boost::system::error_code ignored;
      co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    raised_ = false;
  }

 private:
  asio::steady_timer timer_;
  bool raised_ = false;
};

/// Used on the io_context's one thread. Lives until both its loops have ended, which close() brings about.
class Channel : public std::enable_shared_from_this<Channel> {
 public:
  static constexpr const char* closed_by_peer = "the connection was closed";
  static constexpr std::size_t max_waiting = std::size_t{256} << 20U;  ///< bytes, until the peer is given up
  struct Handlers {
    /// May throw an Error: the channel ends with it.
    std::function<void(wire::Message)> message;
    std::function<void()> heard = [] {};
    /// The next Piece or StreamPiece to send, where there is one. Of a StreamPiece that comes, who takes it says when
    /// it is consumed().
    std::function<std::optional<wire::Message>()> piece = [] { return std::nullopt; };
    /// The stream has ended, and why; once, and not after close().
    std::function<void(const std::string& why)> ended;
  };

  /// `banner`: the peer is an agent, whose banner comes first.
  Channel(asio::io_context& io, Descriptor in, Descriptor out, bool banner)
      : io_(io), in_(io, duplicate(in)), out_(io, duplicate(out)), wake_(io), beat_(io), expects_banner_(banner) {
    in_.non_blocking(true);
  }

  void open(Handlers handlers) {
    handlers_ = std::make_shared<const Handlers>(std::move(handlers));
    asio::co_spawn(io_, read_loop(shared_from_this()), asio::detached);
    asio::co_spawn(io_, write_loop(shared_from_this()), asio::detached);
  }
  /// Sends a sign of life every `seconds` from now on.
  void beat(double seconds) {
    interval_ = seconds;
    if (!std::exchange(beating_, true)) asio::co_spawn(io_, beat_loop(shared_from_this()), asio::detached);
  }

  void send(const wire::Message& message) {
    if (closed_) return;
    wire::append(waiting_, message);
    if (waiting_.size() > max_waiting)
      asio::post(io_, [self = shared_from_this()] { self->end("what is sent to it is not read"); });
    wake_.raise();
  }
  void send_banner() { waiting_ += wire::banner; }
  /// There may be a Piece to send.
  void poke() { wake_.raise(); }
  /// So many bytes of pieces are not held any more: the peer may send as many again.
  void consumed(std::size_t bytes) {
    consumed_ += bytes;
    held_ -= std::min(bytes, held_);
    if (consumed_ >= wire::window / 4 || (consumed_ > 0 && held_ == 0 && !decoder_.partial())) {
      send(wire::Credit{consumed_});
      consumed_ = 0;
    }
  }
  /// Bytes that the stream has not taken yet.
  std::size_t backlog() const { return waiting_.size() + sending_.size(); }
  bool closed() const { return closed_; }
  /// What the host printed before its agent's banner.
  const std::string& preamble() const { return banner_.preamble(); }

  /// Ends it from this side; what waits to be sent is dropped.
  void close() {
    if (std::exchange(closed_, true)) return;
    boost::system::error_code ignored;
    in_.close(ignored);
    out_.close(ignored);
    wake_.raise();
    beat_.raise();
    handlers_.reset();  // one of them that runs now is held by who calls it
  }
  /// Ends it once everything that waits has been sent.
  void close_when_sent() {
    closing_ = true;
    wake_.raise();
  }

 private:
  static int duplicate(Descriptor& fd) {
    Descriptor own = std::move(fd);
    const int copy = ::fcntl(own.get(), F_DUPFD_CLOEXEC, 0);
    if (copy < 0) fail(Errc::io, "cannot open a stream to an agent: {}", std::generic_category().message(errno));
    return copy;
  }

  void end(const std::string& why) {
    if (closed_) return;
    const auto handlers = handlers_;
    close();
    handlers->ended(why);
  }

  // It waits without a buffer, as it may be one of thousands that mostly wait.
  static asio::awaitable<void> read_loop(std::shared_ptr<Channel> self) {
    do {
      boost::system::error_code error;
      co_await self->in_.async_wait(asio::posix::stream_descriptor::wait_read,
                                    asio::redirect_error(asio::use_awaitable, error));
      if (!self->closed_ && error) self->end(error.message());
    } while (self->read_some());
  }

  // What is there, but no more than lets others have their turn. False: it is closed.
  bool read_some() {
    std::array<char, 65536> bytes;
    for (int i = 0; i < 4 && !closed_; ++i) {
      boost::system::error_code error;
      const std::size_t n = in_.read_some(asio::buffer(bytes), error);
      if (error == asio::error::would_block) break;
      if (error)
        end(error == asio::error::eof ? std::string(closed_by_peer) : error.message());
      else
        take(std::string_view(bytes.data(), n));
      if (n < bytes.size()) break;
    }
    return !closed_;
  }

  void take(std::string_view bytes) {
    const auto handlers = handlers_;
    try {
      handlers->heard();
      if (expects_banner_) bytes = banner_.pass(bytes);
      decoder_.feed(bytes);
      while (auto frame = decoder_.next()) {
        wire::Message message = wire::decode(*frame);
        if (const auto* credit = std::get_if<wire::Credit>(&message)) {
          if (credit->bytes > under_way_) fail(Errc::protocol, "credit for bytes that were never sent");
          under_way_ -= static_cast<std::size_t>(credit->bytes);
          wake_.raise();
        } else if (auto* piece = std::get_if<wire::Piece>(&message)) {
          const std::size_t size = piece->bytes.size();
          hold(size);
          handlers->message(std::move(message));
          consumed(size);
        } else if (const auto* part = std::get_if<wire::StreamPiece>(&message)) {
          hold(part->bytes.size());
          handlers->message(std::move(message));
        } else if (!std::holds_alternative<wire::Heartbeat>(message)) {
          handlers->message(std::move(message));
        }
        if (closed_) return;
      }
    } catch (const Error& e) { end(e.what()); }
  }

  static asio::awaitable<void> write_loop(std::shared_ptr<Channel> self) {
    for (;;) {
      while (!self->closed_ && self->waiting_.empty() && !self->next_piece()) {
        if (self->closing_) {
          self->close();
          co_return;
        }
        co_await self->wake_.wait();
      }
      if (self->closed_) co_return;
      self->sending_.clear();
      self->sending_.swap(self->waiting_);
      boost::system::error_code error;
      co_await asio::async_write(self->out_, asio::buffer(self->sending_),
                                 asio::redirect_error(asio::use_awaitable, error));
      self->sending_.clear();
      if (self->sending_.capacity() > most_kept) std::string().swap(self->sending_);
      if (self->closed_) co_return;
      if (error) {
        self->end(error == asio::error::broken_pipe ? std::string(closed_by_peer) : error.message());
        co_return;
      }
    }
  }

  // Pieces go when nothing else waits, and only as far as the peer has consumed.
  bool next_piece() {
    if (closing_ || under_way_ + wire::piece_size > wire::window) return false;
    const auto handlers = handlers_;
    auto piece = handlers->piece();
    if (!piece) return !waiting_.empty();
    if (const auto* part = std::get_if<wire::Piece>(&*piece)) under_way_ += part->bytes.size();
    if (const auto* part = std::get_if<wire::StreamPiece>(&*piece)) under_way_ += part->bytes.size();
    wire::append(waiting_, *piece);
    return true;
  }
  // Whatever the peer does, no more than a window of it is held here.
  void hold(std::size_t bytes) {
    held_ += bytes;
    if (held_ > wire::window) fail(Errc::protocol, "more bytes of checkpoints than were credited");
  }

  static asio::awaitable<void> beat_loop(std::shared_ptr<Channel> self) {
    for (std::uint64_t number = 1; !self->closed_; ++number) {
      // Where the stream is stuck, signs of life would only pile up.
      if (self->waiting_.empty()) self->send(wire::Heartbeat{number});
      const Seconds now = steady_now();
      const double pause = on_grid(now + self->interval_, std::min(0.05, self->interval_ / 8)) - now;
      co_await self->beat_.wait(pause);
    }
  }

  static constexpr std::size_t most_kept = 16384;  // bytes of memory that nothing is in

  asio::io_context& io_;
  asio::posix::stream_descriptor in_, out_;
  Signal wake_, beat_;
  bool expects_banner_;
  wire::BannerFilter banner_;
  FrameDecoder decoder_{wire::message_types};
  std::shared_ptr<const Handlers> handlers_;
  std::string waiting_, sending_;
  std::size_t under_way_ = 0, consumed_ = 0, held_ = 0;
  double interval_ = 1;
  bool beating_ = false, closing_ = false, closed_ = false;
};

}  // namespace hypertune::inline v0::remote::detail
