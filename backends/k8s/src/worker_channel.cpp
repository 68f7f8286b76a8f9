// A connection between a worker's pod and its driver.
#include "worker_channel.hpp"

#include <hypertune/detail/as_duration.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/detail/text.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace hypertune::inline v0::k8s {
namespace {

namespace websocket = beast::websocket;

}  // namespace

WorkerChannel::WorkerChannel(Socket socket, asio::ssl::context& tls)
    : stream_(std::move(socket), tls),
      timer_(stream_.get_executor()),
      close_timer_(stream_.get_executor()),
      turn_(stream_.get_executor()) {}

void WorkerChannel::prepare() {
  ErrorCode ignored;
  socket().set_option(asio::ip::tcp::no_delay(true), ignored);
  stream_.read_message_max(max_channel_message);
  stream_.auto_fragment(false);
  stream_.binary(true);
  stream_.write_buffer_bytes(max_channel_message);  // masking copies a worker's messages in such pieces
}

WorkerChannel::Deadline::Deadline(const std::shared_ptr<WorkerChannel>& channel, double seconds, std::string why)
    : timer_(channel->stream_.get_executor()) {
  timer_.expires_after(hypertune::detail::as_duration(seconds));
  timer_.async_wait([channel, why = std::move(why)](ErrorCode error) {
    if (!error) channel->cut(why);
  });
}

void WorkerChannel::begin(double ping, double silence) {
  ping_ = ping;
  silence_ = silence;
  heard_ = hypertune::detail::steady_seconds();
  stream_.control_callback(
      [this](websocket::frame_type, beast::string_view) { heard_ = hypertune::detail::steady_seconds(); });
  tick();
}

void WorkerChannel::tick() {
  timer_.expires_after(hypertune::detail::as_duration(ping_));
  timer_.async_wait([self = shared_from_this()](ErrorCode error) {
    if (error || self->over_) return;
    if (self->reading_ && hypertune::detail::steady_seconds() - self->heard_ > self->silence_)
      return self->cut(hypertune::detail::format("no sign of life for {:.1f} s",
                                                 hypertune::detail::steady_seconds() - self->heard_));
    // Sends pongs, which need no answer. A side whose own message has not been accepted yet could not answer a ping,
    // and would receive nothing more until it had.
    if (!self->closing_ && !std::exchange(self->pinging_, true))
      self->stream_.async_pong({}, [self](ErrorCode failure) {
        self->pinging_ = false;
        if (failure) self->failed(failure);
      });
    self->tick();
  });
}

asio::awaitable<bool> WorkerChannel::send(Part part, char* piece, std::size_t size) {
  while (writing_ && !closing()) co_await turn_.wait();
  if (closing()) {
    turn_.raise();  // wake the next waiting sender
    co_return false;
  }
  writing_ = true;
  piece[0] = static_cast<char>(part);
  ErrorCode error;
  co_await stream_.async_write(asio::buffer(piece, size), asio::redirect_error(asio::use_awaitable, error));
  writing_ = false;
  turn_.raise();
  if (error) failed(error);
  co_return !error;
}

asio::awaitable<bool> WorkerChannel::receive(Received& into) {
  while (!over_) {
    ErrorCode error;
    reading_ = true;
    heard_ = hypertune::detail::steady_seconds();
    const std::size_t n =
        co_await stream_.async_read_some(asio::buffer(in_), asio::redirect_error(asio::use_awaitable, error));
    reading_ = false;
    if (error) {
      failed(error);
      break;
    }
    std::string_view bytes(in_.data(), n);
    const bool begins = std::exchange(message_begins_, stream_.is_message_done());
    if (begins && (bytes.empty() ? message_begins_ : !stream_.got_binary())) {
      cut("it sends what is none of the protocol's messages");
      break;
    }
    if (begins && bytes.empty()) {
      message_begins_ = true;  // its first byte has not arrived yet
      continue;
    }
    if (begins) {
      part_ = static_cast<Part>(bytes.front());
      bytes.remove_prefix(1);
    }
    into = Received(part_, bytes);
    co_return true;
  }
  co_return false;
}

void WorkerChannel::failed(const ErrorCode& error) {
  if (error != websocket::error::closed) return cut("the connection was lost: " + error.message());
  const auto said =
      hypertune::detail::ascii_line(std::string_view(stream_.reason().reason.data(), stream_.reason().reason.size()));
  cut(said.empty() ? std::string("the other side has closed the connection") : said);
}

void WorkerChannel::close(std::string why) {
  if (closing()) return;
  closing_ = true;
  why_ = std::move(why);
  turn_.raise();
  close_timer_.expires_after(hypertune::detail::as_duration(2));
  close_timer_.async_wait([self = shared_from_this()](ErrorCode error) {
    if (!error) self->cut({});
  });
  websocket::close_reason reason(websocket::close_code::normal);
  reason.reason.assign(why_.substr(0, 120));
  stream_.async_close(reason, [self = shared_from_this()](ErrorCode) { self->cut({}); });
}

void WorkerChannel::cut(std::string why) {
  if (std::exchange(over_, true)) return;
  if (!closing_) why_ = std::move(why);
  timer_.cancel();
  close_timer_.cancel();
  turn_.raise();
  ErrorCode ignored;
  socket().close(ignored);
  if (const auto told = std::exchange(on_over_, nullptr)) told();
}

asio::awaitable<void> pump(std::shared_ptr<WorkerChannel> channel, LocalSocket& from, Part part, bool* moved) {
  std::unique_ptr<char[]> piece;
  std::size_t room = 0;
  while (!channel->closing()) {
    ErrorCode error;
    // Do not hold a buffer while there is nothing to send.
    co_await from.async_wait(asio::socket_base::wait_read, asio::redirect_error(asio::use_awaitable, error));
    if (error) break;
    int waiting = 0;
    ::ioctl(from.native_handle(), FIONREAD, &waiting);
    const auto wanted =
        std::clamp<std::size_t>(static_cast<std::size_t>(std::max(waiting, 1)), 1, max_channel_message - 1);
    if (wanted + 1 > room) {
      room = wanted + 1;
      piece = std::make_unique_for_overwrite<char[]>(room);
    }
    const ssize_t n = ::recv(from.native_handle(), piece.get() + 1, wanted, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0) break;
    *moved = true;
    const bool sent = co_await channel->send(part, piece.get(), static_cast<std::size_t>(n) + 1);
    if (!sent) break;
    constexpr std::size_t max_kept = 16384;
    if (room > max_kept && static_cast<std::size_t>(n) + 1 < room / 2) {
      piece.reset();
      room = 0;
    }
  }
}

asio::awaitable<bool> write_all(LocalSocket& to, std::string_view bytes) {
  ErrorCode error;
  co_await asio::async_write(to, asio::buffer(bytes.data(), bytes.size()),
                             asio::redirect_error(asio::use_awaitable, error));
  co_return !error;
}

}  // namespace hypertune::inline v0::k8s
