// How a Server serves one connection, on a plain or encrypted stream.
#pragma once

#include "server.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/write.hpp>

#include <list>
#include <optional>
#include <string>
#include <utility>

namespace hypertune::inline v0::dashboard {

void set_common_headers(Gate::Response& reply);
std::string experiment_of(const std::string& target);  // "" if it names none
boost::asio::awaitable<std::string> texts_of(const Api& api, std::vector<std::string> ids);
boost::asio::awaitable<void> serve_encrypted(Server& server, hypertune::detail::HttpLoop& loop, Encryption& encryption,
                                             boost::beast::tcp_stream stream);

template <class Stream>
boost::asio::awaitable<std::optional<Server::Response>> Server::answer(Stream& stream, const Request& request) {
  std::optional<Response> reply = refused(request);
  if (!reply && gate_ != nullptr) reply = gate_->refuse(request);
  if (reply) co_return reply;
  const std::string target(request.target());
  if (request.method() != boost::beast::http::verb::head && (target == "/events" || target.starts_with("/events?"))) {
    if (streams_ >= limits_.streams) co_return response(503, R"({"error":"too many pages are open: close some"})");
    std::string only = experiment_of(target);
    co_await serve_events(stream, std::move(only));
    co_return std::nullopt;
  }
  auto work = answered(request);
  reply = co_await boost::asio::co_spawn(workers_, std::move(work), boost::asio::use_awaitable);
  co_return reply;
}

template <class Stream>
boost::asio::awaitable<void> Server::serve_events(Stream& stream, std::string only) {
  namespace http = boost::beast::http;
  auto& socket = boost::beast::get_lowest_layer(stream);
  boost::system::error_code error;
  auto token = boost::asio::redirect_error(boost::asio::use_awaitable, error);

  struct Listening {
    explicit Listening(Server& s) : server(s), timer(s.loop_.context()) {
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
  std::uint64_t seen = change_count_;

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
      boost::asio::steady_timer pause(loop_.context());
      pause.expires_after(limits_.events);
      co_await pause.async_wait(token);
      error = {};
    }
    if (change_count_ == seen) {
      listening.timer.expires_after(limits_.alive);
      co_await listening.timer.async_wait(token);
      const bool silent = !error;
      error = {};
      if (silent && change_count_ == seen) {
        text = ": alive\n\n";
        continue;
      }
    }
    const std::uint64_t now = change_count_;
    text = co_await changes_since(seen, only);
    seen = now;
  }
}

}  // namespace hypertune::inline v0::dashboard
