// How a Server serves one connection, on a plain or encrypted stream.
#pragma once

#include "server.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
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
boost::asio::awaitable<std::optional<Server::Response>> Server::answer(Stream& stream, Connection& connection,
                                                                       const Request& request) {
  namespace http = boost::beast::http;
  std::optional<Response> reply = refused(request);
  if (!reply && gate_ != nullptr) reply = gate_->refuse(request);
  if (reply) co_return reply;
  const std::string target(request.target());
  if (request.method() != http::verb::head && (target == "/events" || target.starts_with("/events?"))) {
    if (listeners_.size() >= static_cast<std::size_t>(limits_.streams))
      co_return response(503, R"({"error":"too many pages are open: close some"})");
    Response head = response(200, "", "text/event-stream");
    head.set("X-Accel-Buffering", "no");
    hypertune::detail::EventStream<Stream> events(loop_, stream, connection, request, head);
    std::string only = experiment_of(target);
    co_await serve_events(events, std::move(only));
    co_return std::nullopt;
  }
  auto work = answered(request);
  reply = co_await boost::asio::co_spawn(workers_, std::move(work), boost::asio::use_awaitable);
  co_return reply;
}

template <class Stream>
boost::asio::awaitable<void> Server::serve_events(hypertune::detail::EventStream<Stream>& events, std::string only) {
  struct Listening {
    Listening(Server& s, hypertune::detail::Wakeup& wakeup) : all(s.listeners_), at(all.insert(all.end(), &wakeup)) {}
    Listening(const Listening&) = delete;
    Listening& operator=(const Listening&) = delete;
    ~Listening() { all.erase(at); }
    std::list<hypertune::detail::Wakeup*>& all;
    std::list<hypertune::detail::Wakeup*>::iterator at;
  };
  const Listening listening(*this, events.wakeup());
  std::uint64_t seen = change_count_;
  bool there = co_await events.begin();
  std::string text = "retry: 1000\n\n";
  while (there && !loop_.draining()) {
    if (!text.empty()) {
      // A client that does not accept it is dropped. Changes in the meantime are sent once, with the newest state.
      there = co_await events.send(text);
      if (!there) co_return;
      text.clear();
      // A minimum pause; changes in the meantime do not end this wait.
      boost::asio::steady_timer pause(loop_.context());
      pause.expires_after(limits_.events);
      boost::system::error_code error;
      co_await pause.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, error));
    }
    if (change_count_ == seen) {
      const double alive = std::chrono::duration<double>(limits_.alive).count();
      co_await events.wakeup().wait(alive);
      if (change_count_ == seen) {
        text = ": alive\n\n";
        continue;
      }
    }
    const std::uint64_t now = change_count_;
    text = co_await changes_since(seen, only);
    seen = now;
  }
  if (there) co_await events.end();
}

}  // namespace hypertune::inline v0::dashboard
