// Wire: one connection to a server, with or without TLS, as a stream of Asio.
#pragma once

#include <hypertune/error.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace hypertune::inline v0::net {

namespace asio = boost::asio;
using boost::system::error_code;

struct TlsContext;

/// TLS and plain connections are one type, whose templates are instantiated once (in wire.cpp), because that takes
/// seconds to compile. Used on the io_context's one thread.
class Wire : public std::enable_shared_from_this<Wire> {
 public:
  using executor_type = asio::io_context::executor_type;
  using Handler = asio::any_completion_handler<void(error_code, std::size_t)>;

  explicit Wire(asio::io_context& io);
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  ~Wire();

  executor_type get_executor() noexcept { return io_.get_executor(); }
  asio::ip::tcp::socket& socket() { return socket_; }

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    asio::mutable_buffer first;
    for (auto at = asio::buffer_sequence_begin(buffers); at != asio::buffer_sequence_end(buffers); ++at)
      if (first = *at; first.size() > 0) break;
    return asio::async_initiate<Token, void(error_code, std::size_t)>(
        [this, first](auto handler) { read(first, Handler(std::move(handler))); }, token);
  }
  /// Joins several small buffers (a frame's header, a piece) to be sent as one TLS record.
  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return asio::async_initiate<Token, void(error_code, std::size_t)>(
        [this, what = joined(asio::buffer_sequence_begin(buffers), asio::buffer_sequence_end(buffers))](auto handler) {
          write(what, Handler(std::move(handler)));
        },
        token);
  }

  /// Starts TLS. Returns empty or an error; `trusted` false: the server's certificate was not accepted,
  /// and the error begins with "for the name".
  asio::awaitable<std::string> start_tls(std::shared_ptr<TlsContext> context, bool& trusted);
  const TlsContext* tls() const { return context_.get(); }

  /// Closes the connection after this many seconds, unless it is called again; expired() tells whether that happened.
  void expires_in(double seconds);
  void expires_never();
  bool expired() const { return expired_; }
  /// Pending operations end with an error.
  void close() noexcept;
  /// Whether the other side has closed it or sent unexpected data: then it cannot be used again.
  bool stale();

  double used_at = 0;  ///< monotonic time

 private:
  struct Tls;
  static constexpr std::size_t joined_size = std::size_t{16} << 10U;

  template <class At>
  asio::const_buffer joined(At at, const At end) {
    asio::const_buffer first;
    while (at != end && first.size() == 0) first = *at++;
    if (at == end || first.size() >= joined_size) return first;
    std::size_t size = asio::buffer_copy(asio::buffer(joined_), first);
    for (; at != end && size < joined_size; ++at) {
      const asio::const_buffer next = *at;
      size += asio::buffer_copy(asio::buffer(joined_) + size, next);
    }
    return {joined_.data(), size};
  }
  void read(asio::mutable_buffer into, Handler handler);
  void write(asio::const_buffer from, Handler handler);

  asio::io_context& io_;
  asio::ip::tcp::socket socket_;
  asio::steady_timer timer_;
  std::shared_ptr<TlsContext> context_;
  std::unique_ptr<Tls> tls_;
  std::array<char, joined_size> joined_;
  bool expired_ = false;
};

/// A shared Wire as a stream that can be moved.
class WireStream {
 public:
  using executor_type = Wire::executor_type;
  explicit WireStream(std::shared_ptr<Wire> wire) : wire_(std::move(wire)) {}
  executor_type get_executor() noexcept { return wire_->get_executor(); }
  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return wire_->async_read_some(buffers, std::forward<Token>(token));
  }
  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return wire_->async_write_some(buffers, std::forward<Token>(token));
  }
  Wire& wire() { return *wire_; }

 private:
  std::shared_ptr<Wire> wire_;
};

}  // namespace hypertune::inline v0::net
