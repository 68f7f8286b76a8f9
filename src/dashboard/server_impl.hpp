// How a Server serves one connection, on a plain or encrypted stream.
#pragma once

#include "server.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace hypertune::inline v0::dashboard {

void set_common_headers(Gate::Response& reply);
std::string experiment_of(const std::string& target);  // "" if it names none
boost::asio::awaitable<std::string> texts_of(const Api& api, std::vector<std::string> ids);
boost::asio::awaitable<void> serve_encrypted(Server& server, Encryption& encryption, boost::beast::tcp_stream stream);

template <class Stream>
boost::asio::awaitable<bool> Server::write(Stream& stream, Response& reply) {
  boost::system::error_code error;
  boost::beast::get_lowest_layer(stream).expires_after(limits_.answer);
  co_await boost::beast::http::async_write(stream, reply,
                                           boost::asio::redirect_error(boost::asio::use_awaitable, error));
  co_return !error;
}

template <class Stream>
boost::asio::awaitable<void> Server::serve(Stream& stream, detail::OpenConnections::Connection& connection) {
  namespace http = boost::beast::http;
  auto& socket = boost::beast::get_lowest_layer(stream);
  boost::beast::flat_buffer buffer;
  boost::system::error_code error;
  auto token = boost::asio::redirect_error(boost::asio::use_awaitable, error);
  for (bool more = true; more;) {
    http::request_parser<http::empty_body> parser;
    parser.body_limit(0);
    parser.header_limit(limits_.head);
    if (buffer.size() == 0) {
      socket.expires_after(connection.proven ? limits_.idle : limits_.first);
      const std::size_t read = co_await stream.async_read_some(buffer.prepare(4096), token);
      if (error) co_return;
      buffer.commit(read);
    }
    socket.expires_after(limits_.request);
    co_await http::async_read(stream, buffer, parser, token);
    if (error && error.category() != http::make_error_code(http::error::bad_method).category()) co_return;
    const Request& request = parser.get();
    connection.busy = true;
    Response reply;
    std::optional<Response> refusal;
    if (error)
      refusal = refusal_of(error);
    else
      refusal = refused(request);
    if (!refusal && gate_ != nullptr) refusal = gate_->refuse(request);
    const bool head = !error && request.method() == http::verb::head;
    more = !error && request.keep_alive();
    if (!refusal) {
      const std::string target(request.target());
      if (!head && (target == "/events" || target.starts_with("/events?"))) {
        if (streams_ >= limits_.streams) {
          reply = response(503, R"({"error":"too many pages are open: close some"})");
        } else {
          std::string only = experiment_of(target);
          co_await serve_events(stream, std::move(only));
          co_return;
        }
      } else {
        socket.expires_never();  // the computation has its own end
        auto work = answered(request);
        reply = co_await boost::asio::co_spawn(workers_, std::move(work), boost::asio::use_awaitable);
      }
    } else {
      reply = std::move(*refusal);
    }
    reply.version(error ? 11 : request.version());
    reply.keep_alive(more);
    reply.prepare_payload();
    if (head) reply.body().clear();
    const bool written = co_await write(stream, reply);
    if (!written) co_return;
    connection.busy = false;
    connection.proven = more;
    connection.since = detail::OpenConnections::Clock::now();
  }
  // Closing a socket with unread bytes resets the connection, and the client may lose its answer.
  boost::system::error_code ignored;
  socket.socket().shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
  socket.expires_after(std::chrono::seconds(5));
  error = {};
  for (std::size_t left = std::size_t{16} << 20; !error && left > 0;) {
    buffer.clear();
    const std::size_t read = co_await socket.async_read_some(buffer.prepare(65536), token);
    left -= std::min(left, read);
  }
}

template <class Stream>
boost::asio::awaitable<void> Server::serve_events(Stream& stream, std::string only) {
  namespace http = boost::beast::http;
  auto& socket = boost::beast::get_lowest_layer(stream);
  boost::system::error_code error;
  auto token = boost::asio::redirect_error(boost::asio::use_awaitable, error);

  struct Listening {
    explicit Listening(Server& s) : server(s), timer(s.context_) {
      ++server.streams_;
      at = server.listeners_.insert(server.listeners_.end(), &timer);
    }
    Listening(const Listening&) = delete;
    Listening& operator=(const Listening&) = delete;
    ~Listening() {
      server.listeners_.erase(at);
      --server.streams_;
    }
    Server& server;
    boost::asio::steady_timer timer;
    std::list<boost::asio::steady_timer*>::iterator at;
  };
  Listening listening(*this);
  std::uint64_t seen = told_;

  http::response<http::empty_body> head(http::status::ok, 11);
  Response common;
  set_common_headers(common);
  for (const auto& field : common.base()) head.insert(field.name_string(), field.value());
  head.set(http::field::content_type, "text/event-stream");
  head.set("X-Accel-Buffering", "no");
  head.keep_alive(false);
  http::response_serializer<http::empty_body> serializer(head);
  socket.expires_after(limits_.answer);
  co_await http::async_write_header(stream, serializer, token);
  std::string text = "retry: 1000\n\n";
  while (!error) {
    if (!text.empty()) {
      // A client that does not accept it is dropped. Changes in the meantime are sent once, with the newest state.
      socket.expires_after(limits_.answer);
      co_await boost::asio::async_write(stream, boost::asio::buffer(text), token);
      socket.expires_never();
      if (error) co_return;
      text.clear();
      // A minimum pause; changes in the meantime do not end this wait.
      boost::asio::steady_timer pause(context_);
      pause.expires_after(limits_.events);
      co_await pause.async_wait(token);
      error = {};
    }
    if (told_ == seen) {
      listening.timer.expires_after(limits_.alive);
      co_await listening.timer.async_wait(token);
      const bool silent = !error;
      error = {};
      if (silent && told_ == seen) {
        text = ": alive\n\n";
        continue;
      }
    }
    const std::uint64_t now = told_;
    text = co_await news_since(seen, only);
    seen = now;
  }
}

}  // namespace hypertune::inline v0::dashboard
