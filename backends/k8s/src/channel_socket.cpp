// Part of hypertune::k8s.
#include "channel_socket.hpp"

#include "http.hpp"

#include <hypertune/detail/run_clock.hpp>

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/bind_handler.hpp>
#include <boost/beast/core/role.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <boost/beast/websocket/stream.hpp>

#include <optional>

namespace hypertune::inline v0::net {

// How Beast closes the layer below a WebSocket. TLS has nothing to add after the closing frames.
void teardown(boost::beast::role_type, WireStream& stream, error_code& error) {
  stream.wire().close();
  error = {};
}
template <class Handler>
void async_teardown(boost::beast::role_type, WireStream& stream, Handler&& handler) {
  stream.wire().close();
  asio::post(stream.get_executor(), boost::beast::bind_front_handler(std::forward<Handler>(handler), error_code()));
}

void beast_close_socket(WireStream& stream) { stream.wire().close(); }

}  // namespace hypertune::inline v0::net

namespace hypertune::inline v0::k8s::detail {

namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;

struct ChannelSocket::State {
  explicit State(std::shared_ptr<Wire> wire) : stream(WireStream(std::move(wire))) {}
  websocket::stream<WireStream, false> stream;
  ChannelReader reader;
  double heard_at = 0;
};

ChannelSocket::ChannelSocket(std::shared_ptr<Wire> wire) : state_(std::make_unique<State>(std::move(wire))) {
  auto& stream = state_->stream;
  stream.set_option(
      websocket::stream_base::timeout{websocket::stream_base::none(), websocket::stream_base::none(), false});
  stream.binary(true);
  stream.auto_fragment(false);
  stream.write_buffer_bytes(std::size_t{64} << 10U);
  stream.read_message_max(0);  // the data is passed on piece by piece
  stream.control_callback(
      [this](websocket::frame_type, beast::string_view) { state_->heard_at = hypertune::detail::steady_seconds(); });
}
ChannelSocket::~ChannelSocket() = default;

double ChannelSocket::heard_at() const { return state_->heard_at; }

asio::awaitable<ChannelSocket::Opened> ChannelSocket::open(const RequestText& request, const Headers& headers,
                                                           const std::string& protocols) {
  for (const auto& [name, value] : headers) check_header(name, value);
  check_header("the request's path", request.target);
  state_->stream.set_option(websocket::stream_base::decorator([&](websocket::request_type& upgrade) {
    upgrade.set(http::field::user_agent, request.user_agent);
    upgrade.set(http::field::sec_websocket_protocol, protocols);
    for (const auto& [name, value] : headers) upgrade.insert(name, value);
  }));
  websocket::response_type answer;
  error_code error;
  Wire& wire = state_->stream.next_layer().wire();
  co_await state_->stream.async_handshake(answer, request.host, request.target,
                                          asio::redirect_error(asio::use_awaitable, error));
  Opened opened;
  state_->heard_at = hypertune::detail::steady_seconds();
  if (!error) {
    opened.status = 101;
    opened.protocol = std::string(answer[http::field::sec_websocket_protocol]);
  } else if (error == websocket::error::upgrade_declined) {
    opened.status = static_cast<int>(answer.result_int());
    opened.body = answer.body();
  } else if (wire.expired()) {
    opened.trouble = "the answer did not come in time";
  } else if (error == asio::error::operation_aborted) {
    throw_cancelled();
  } else {
    opened.trouble = error.message();
  }
  co_return opened;
}

asio::awaitable<ChannelSocket::Read> ChannelSocket::read(asio::mutable_buffer into) {
  auto& stream = state_->stream;
  for (;;) {
    error_code error;
    const std::size_t size = co_await stream.async_read_some(into, asio::redirect_error(asio::use_awaitable, error));
    Read read;
    if (error) {
      if (error == asio::error::operation_aborted && stream.next_layer().wire().socket().is_open()) throw_cancelled();
      read.over = true;
      if (error == asio::error::operation_aborted)
        read.trouble = "it was ended here";
      else if (error == asio::error::eof)
        read.trouble = "the connection was closed without a word";
      else if (error != websocket::error::closed)
        read.trouble = error.message();
      else if (const auto code = stream.reason().code; code != websocket::close_code::normal &&
                                                       code != websocket::close_code::none &&
                                                       code != websocket::close_code::going_away)
        read.trouble = "the server closed the connection: " + std::string(stream.reason().reason.c_str());
      co_return read;
    }
    state_->heard_at = hypertune::detail::steady_seconds();
    const auto piece = state_->reader.take({static_cast<const char*>(into.data()), size}, stream.is_message_done());
    if (!piece) continue;
    read.channel = piece->channel;
    read.bytes = piece->bytes;
    co_return read;
  }
}

asio::awaitable<std::string> ChannelSocket::write(asio::const_buffer message) {
  error_code error;
  co_await state_->stream.async_write(message, asio::redirect_error(asio::use_awaitable, error));
  co_return error ? error.message() : std::string();
}

asio::awaitable<void> ChannelSocket::ping() {
  error_code ignored;
  co_await state_->stream.async_ping({}, asio::redirect_error(asio::use_awaitable, ignored));
}

asio::awaitable<void> ChannelSocket::close() {
  error_code ignored;
  co_await state_->stream.async_close(websocket::close_code::normal,
                                      asio::redirect_error(asio::use_awaitable, ignored));
}

}  // namespace hypertune::inline v0::k8s::detail
