// EventStream: an answer that is sent in pieces, as they come: server-sent events, or lines.
#pragma once

#include <hypertune/net/http_loop.hpp>
#include <hypertune/net/wakeup.hpp>

#include <boost/asio/write.hpp>
#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/serializer.hpp>

#include <chrono>
#include <string_view>

namespace hypertune::inline v0::detail {

/// Used by a server's answer(), which then returns nullopt. After each function that returns false the client has gone,
/// and the answer is to return. The client holds the sender back: send() returns when what was sent before is on its way
/// to it, and gives it up if that takes longer than HttpLimits::answer.
template <class Stream>
class EventStream {
 public:
  /// `head`: status and headers of the answer; its body is not used.
  EventStream(HttpLoop& loop, Stream& stream, HttpLoop::Connection& connection, const HttpRequest& request,
              const HttpResponse& head)
      : loop_(loop), stream_(stream), connection_(connection), head_(head.base()), wakeup_(loop.context()) {
    chunked_ = request.version() >= 11;
    head_.version(request.version());
    head_.keep_alive(chunked_ && request.keep_alive());
    if (chunked_) head_.chunked(true);
    connection_.draining = [this] { wakeup_.raise(); };
  }
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;
  ~EventStream() { connection_.draining = nullptr; }

  boost::asio::awaitable<bool> begin() {
    boost::beast::http::response_serializer<boost::beast::http::empty_body> serializer(head_);
    boost::system::error_code error;
    socket().expires_after(loop_.limits().answer);
    co_await boost::beast::http::async_write_header(stream_, serializer,
                                                    boost::asio::redirect_error(boost::asio::use_awaitable, error));
    socket().expires_never();
    co_return !error;
  }
  /// `piece` must live until this returns; it is not empty.
  boost::asio::awaitable<bool> send(std::string_view piece) {
    const boost::asio::const_buffer bytes(piece.data(), piece.size());
    boost::system::error_code error;
    auto token = boost::asio::redirect_error(boost::asio::use_awaitable, error);
    socket().expires_after(loop_.limits().answer);
    if (chunked_)
      co_await boost::asio::async_write(stream_, boost::beast::http::make_chunk(bytes), token);
    else
      co_await boost::asio::async_write(stream_, bytes, token);
    socket().expires_never();
    co_return !error;
  }
  /// Completes the answer. Without it the client learns that the answer was cut off.
  boost::asio::awaitable<void> end() {
    if (!chunked_) co_return;  // the end of the connection is that of the answer
    boost::system::error_code error;
    socket().expires_after(loop_.limits().answer);
    co_await boost::asio::async_write(stream_, boost::beast::http::make_chunk_last(),
                                      boost::asio::redirect_error(boost::asio::use_awaitable, error));
    connection_.goes_on = !error;
  }

  /// Raised by those who have something to send, on the loop's thread, and when the server is to end.
  Wakeup& wakeup() { return wakeup_; }

 private:
  boost::beast::tcp_stream& socket() { return boost::beast::get_lowest_layer(stream_); }

  HttpLoop& loop_;
  Stream& stream_;
  HttpLoop::Connection& connection_;
  boost::beast::http::response<boost::beast::http::empty_body> head_;
  Wakeup wakeup_;
  bool chunked_ = false;
};

}  // namespace hypertune::inline v0::detail
