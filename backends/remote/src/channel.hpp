// Channel: one stream of host protocol messages over a pair of descriptors.
#pragma once

#include "descriptor_watch.hpp"
#include "host_protocol.hpp"

#include <hypertune/detail/descriptor.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/net/spawn.hpp>
#include <hypertune/net/wakeup.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

namespace hypertune::inline v0::remote::detail {

using hypertune::detail::Wakeup;

namespace asio = boost::asio;
using hypertune::detail::Descriptor;

/// A duplicate with close-on-exec, which belongs to the caller. Error of kind `io` if too many files are open.
inline int duplicate_of(const Descriptor& fd) {
  const int copy = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) fail(Errc::io, "cannot open a stream to an agent: {}", std::generic_category().message(errno));
  return copy;
}

inline Seconds steady_now() { return hypertune::detail::steady_seconds(); }

/// The last multiple of `grid` not after `at`. Timers that need not be exact expire together this way, so that the
/// timers of a thousand hosts wake the thread a few times instead of a thousand times.
inline Seconds on_grid(Seconds at, double grid) { return std::floor(at / grid) * grid; }

/// Must be used on the io_context's one thread. Lives from open() until its stream ends or close().
class Channel : public std::enable_shared_from_this<Channel> {
 public:
  static constexpr const char* closed_by_peer = "the connection was closed";
  static constexpr std::size_t max_waiting = std::size_t{256} << 20U;  ///< unsent bytes at which the peer is given up
  struct Handlers {
    /// Called for each message. If it throws an Error, the channel ends with it.
    std::function<void(wire::Message)> message;
    std::function<void()> heard = [] {};
    /// Returns the next Piece or StreamPiece to send, if there is one. If not, it is asked again after poke(). (The
    /// receiver of a StreamPiece calls consumed().)
    std::function<std::optional<wire::Message>()> piece = [] { return std::nullopt; };
    /// Called once when the stream has ended, with the reason; not after close().
    std::function<void(const std::string& why)> ended;
  };

  /// `banner`: the peer is an agent, which sends its banner first.
  Channel(asio::io_context& io, Descriptor in, Descriptor out, bool banner)
      : io_(io),
        watch_(asio::use_service<DescriptorWatch>(io)),
        in_(own(std::move(in))),
        out_(own(std::move(out))),
        in_is_socket_(is_socket(in_)),
        out_is_socket_(is_socket(out_)),
        beat_(io),
        expects_banner_(banner) {}

  void open(Handlers handlers) {
    handlers_ = std::make_shared<const Handlers>(std::move(handlers));
    const auto self = shared_from_this();
    if (!watch_.add(in_.get(), EPOLLIN, [self] { self->read(); }))
      asio::post(io_, [self, why = why(errno)] { self->end(why); });
    flush_soon();
  }
  /// Sends a heartbeat every `seconds` from now on.
  void beat(double seconds) {
    interval_ = seconds;
    if (std::exchange(beating_, true)) return;
    hypertune::detail::spawn(io_, beat_loop(shared_from_this()),
                             [self = shared_from_this()](const std::string& why) { self->end(why); });
  }

  void send(const wire::Message& message) {
    if (closed_) return;
    wire::append(waiting_, message);
    if (waiting_.size() > max_waiting)
      asio::post(io_, [self = shared_from_this()] { self->end("what is sent to it is not read"); });
    flush_soon();
  }
  void send_banner() { waiting_ += wire::banner; }
  /// Handlers::piece may have a new Piece.
  void poke() {
    has_pieces_ = true;
    flush_soon();
  }
  /// This many bytes of pieces are no longer held, so the peer may send as many again.
  void consumed(std::size_t bytes) {
    consumed_ += bytes;
    held_ -= std::min(bytes, held_);
    if (consumed_ >= wire::window / 4 || (consumed_ > 0 && held_ == 0 && !decoder_.partial())) {
      send(wire::Credit{consumed_});
      consumed_ = 0;
    }
  }
  /// Bytes not yet written to the stream.
  std::size_t backlog() const { return waiting_.size() + sending_.size() - sent_; }
  bool closed() const { return closed_; }
  /// The host's output before the agent's banner.
  const std::string& preamble() const { return banner_.preamble(); }

  /// Closes the channel; unsent data is dropped.
  void close() {
    if (std::exchange(closed_, true)) return;
    const auto self = shared_from_this();  // the watch holds the other references
    watch_.remove(in_.get());
    if (blocked_) watch_.remove(out_.get());
    in_ = Descriptor();
    out_ = Descriptor();
    beat_.raise();
    handlers_.reset();  // a running handler is kept alive by its caller
  }
  /// Closes the channel after all pending data has been sent.
  void close_when_sent() {
    closing_ = true;
    flush_soon();
  }

 private:
  static std::string why(int error) { return std::generic_category().message(error); }
  // Duplicates a descriptor, with close-on-exec and non-blocking.
  static Descriptor own(Descriptor given) {
    Descriptor fd(duplicate_of(given));
    const int flags = ::fcntl(fd.get(), F_GETFL);
    if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) < 0)
      fail(Errc::io, "cannot open a stream to an agent: {}", why(errno));
    return fd;
  }

  static bool is_socket(const Descriptor& fd) {
    struct stat info{};
    return ::fstat(fd.get(), &info) == 0 && S_ISSOCK(info.st_mode);
  }
  // What is sent to a socket and received from it need not pass through the layer of files.
  ssize_t read_in(char* data, std::size_t size) const {
    if (!in_is_socket_) return hypertune::detail::read_some(in_.get(), data, size);
    ssize_t n = 0;
    do n = ::recv(in_.get(), data, size, 0);
    while (n < 0 && errno == EINTR);
    return n;
  }
  ssize_t write_out(const char* data, std::size_t size) const {
    return out_is_socket_ ? ::send(out_.get(), data, size, MSG_NOSIGNAL) : ::write(out_.get(), data, size);
  }

  void end(const std::string& why) {
    if (closed_) return;
    const auto handlers = handlers_;
    close();
    handlers->ended(why);
  }

  // Reads a limited amount, so that others have their turn; the rest is reported again.
  void read() {
    std::array<char, 65536> bytes;
    for (int i = 0; i < 4 && !closed_; ++i) {
      const ssize_t n = read_in(bytes.data(), bytes.size());
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) return end(n == 0 ? std::string(closed_by_peer) : why(errno));
      take(std::string_view(bytes.data(), static_cast<std::size_t>(n)));
      if (static_cast<std::size_t>(n) < bytes.size()) return;
    }
  }

  void take(std::string_view bytes) {
    const auto handlers = handlers_;
    try {
      handlers->heard();
      if (expects_banner_) bytes = banner_.pass(bytes);
      decoder_.feed(bytes);
      while (const auto frame = decoder_.next()) {
        wire::Message message = wire::decode(*frame);
        if (const auto* credit = std::get_if<wire::Credit>(&message)) {
          if (credit->bytes > under_way_) fail(Errc::protocol, "credit for bytes that were never sent");
          under_way_ -= static_cast<std::size_t>(credit->bytes);
          flush_soon();
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
    } catch (const std::exception& e) { end(e.what()); }
  }

  // Combines everything sent within one turn of the thread into one system call.
  void flush_soon() {
    if (closed_ || blocked_ || std::exchange(flushing_, true)) return;
    asio::post(io_, [self = shared_from_this()] {
      self->flushing_ = false;
      self->flush();
    });
  }
  void flush() {
    if (closed_ || blocked_ || !handlers_) return;
    try {
      if (sending_.empty()) {
        if (!more()) return;
        sending_.swap(waiting_);
      }
      if (write() && more()) flush_soon();  // give others their turn first
    } catch (const std::exception& e) { end(e.what()); }
  }
  // Whether there is more to send. If not, and the channel should close then, closes it.
  bool more() {
    if (!waiting_.empty() || next_piece()) return true;
    if (closing_) close();
    return false;
  }
  // Returns false if not everything could be written now.
  bool write() {
    while (!closed_ && sent_ < sending_.size()) {
      const ssize_t n = write_out(sending_.data() + sent_, sending_.size() - sent_);
      if (n >= 0) {
        sent_ += static_cast<std::size_t>(n);
      } else if (errno == EAGAIN) {
        blocked_ = watch_.add(out_.get(), EPOLLOUT, [self = shared_from_this()] { self->writable(); });
        if (!blocked_) end(why(errno));
        return false;
      } else if (errno != EINTR) {
        end(errno == EPIPE ? std::string(closed_by_peer) : why(errno));
        return false;
      }
    }
    if (closed_) return false;
    sent_ = 0;
    sending_.clear();
    if (sending_.capacity() > max_kept) std::string().swap(sending_);
    return true;
  }
  void writable() {
    watch_.remove(out_.get());
    blocked_ = false;
    flush();
  }

  // Pieces are sent only when nothing else waits, and within the peer's window.
  bool next_piece() {
    if (!has_pieces_ || closing_ || under_way_ + wire::piece_size > wire::window) return false;
    const auto handlers = handlers_;
    has_pieces_ = false;  // piece() may poke
    auto piece = handlers->piece();
    if (!piece) return !waiting_.empty();
    has_pieces_ = true;
    if (const auto* part = std::get_if<wire::Piece>(&*piece)) under_way_ += part->bytes.size();
    if (const auto* part = std::get_if<wire::StreamPiece>(&*piece)) under_way_ += part->bytes.size();
    wire::append(waiting_, *piece);
    return true;
  }
  // Enforces that at most one window of the peer's bytes is held here.
  void hold(std::size_t bytes) {
    held_ += bytes;
    if (held_ > wire::window) fail(Errc::protocol, "more bytes of checkpoints than were credited");
  }

  static asio::awaitable<void> beat_loop(std::shared_ptr<Channel> self) {
    for (std::uint64_t number = 1; !self->closed_; ++number) {
      // If the stream is stuck, heartbeats would only pile up.
      if (self->waiting_.empty()) self->send(wire::Heartbeat{number});
      const Seconds now = steady_now();
      const double pause = on_grid(now + self->interval_, std::min(0.05, self->interval_ / 8)) - now;
      co_await self->beat_.wait(pause);
    }
  }

  static constexpr std::size_t max_kept = 16384;  // maximum bytes of unused memory that are kept

  asio::io_context& io_;
  DescriptorWatch& watch_;
  Descriptor in_, out_;
  const bool in_is_socket_, out_is_socket_;
  Wakeup beat_;
  bool expects_banner_;
  wire::BannerFilter banner_;
  FrameDecoder decoder_{wire::message_types};
  std::shared_ptr<const Handlers> handlers_;
  std::string waiting_, sending_;
  std::size_t sent_ = 0;  // bytes already written of sending_
  std::size_t under_way_ = 0, consumed_ = 0, held_ = 0;
  double interval_ = 1;
  bool has_pieces_ = false;                  // perhaps
  bool flushing_ = false, blocked_ = false;  // a flush is posted; waiting until the stream is writable
  bool beating_ = false, closing_ = false, closed_ = false;
};

}  // namespace hypertune::inline v0::remote::detail
