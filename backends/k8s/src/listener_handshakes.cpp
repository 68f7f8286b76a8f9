// AgentListener: accepting connections and authenticating workers.
#include "call_request.hpp"
#include "listener_state.hpp"

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/remote/detail/wakeup.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <utility>

namespace hypertune::inline v0::k8s {
namespace {

namespace http = beast::http;
constexpr std::uint32_t longest_header = 8192;

}  // namespace

asio::awaitable<void> AgentListener::State::accept_all() {
  remote::detail::Wakeup again(io.get_executor());
  while (acceptor.is_open()) {
    co_await make_room();
    asio::ip::tcp::socket socket(io);
    ErrorCode error;
    co_await acceptor.async_accept(socket, asio::redirect_error(asio::use_awaitable, error));
    if (!acceptor.is_open()) break;
    if (error) {  // mostly too many open files: further connections wait in the kernel
      co_await again.wait(0.1);
      continue;
    }
    auto line = std::make_shared<CallLine>(std::move(socket), tls);
    asio::co_spawn(io, greet(std::move(line)), asio::detached);
  }
}

// Clients that send nothing must not keep others out. At the limit, the oldest connection has one second, which is far
// more than a worker needs; further connections wait in the kernel.
asio::awaitable<void> AgentListener::State::make_room() {
  constexpr double patience = 1;
  while (acceptor.is_open() && guests.size() >= options.handshakes) {
    const double age = hypertune::detail::steady_seconds() - guests.front().since;
    if (age >= patience) guests.front().line->cut("others wait");  // it removes itself from the list
    co_await left.wait(age >= patience ? 1e7 : patience - age);
  }
}

asio::awaitable<void> AgentListener::State::greet(std::shared_ptr<CallLine> line) {
  const auto guest = guests.insert(guests.end(), Guest{line, hypertune::detail::steady_seconds()});
  try {
    co_await let_in(line);
  } catch (const std::exception& e) { line->cut(e.what()); }
  guests.erase(guest);
  left.raise();
}

asio::awaitable<void> AgentListener::State::let_in(std::shared_ptr<CallLine> line) {
  const CallLine::Deadline deadline(line, options.handshake, "it has not shown its token in time");
  line->prepare();
  ErrorCode error;
  auto& secured = line->stream().next_layer();
  co_await secured.async_handshake(asio::ssl::stream_base::server, asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return line->cut(error.message());
  beast::flat_buffer buffer(std::size_t{2} * longest_header);
  http::request_parser<http::empty_body> parser;
  parser.header_limit(longest_header);
  co_await http::async_read(secured, buffer, parser, asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return line->cut(error.message());
  auto verdict = judge_call(parser.get(), options.token);
  if (verdict.status == http::status::unauthorized) {
    ErrorCode unknown;
    refused_token(line->socket().remote_endpoint(unknown).address().to_string());
  }
  if (verdict.status == http::status::switching_protocols) {
    const std::lock_guard lock(mutex);
    if (!places.contains(verdict.worker) || closed) {
      verdict.status = http::status::not_found;
      verdict.why = "the driver does not know this worker, or not yet";
    }
  }
  if (verdict.status != http::status::switching_protocols) {
    http::response<http::string_body> answer(verdict.status, 11);
    answer.set(http::field::content_type, "text/plain");
    if (verdict.status == http::status::unauthorized) answer.set(http::field::www_authenticate, "Bearer");
    answer.keep_alive(false);
    answer.body() = verdict.why;
    answer.prepare_payload();
    co_await http::async_write(secured, answer, asio::redirect_error(asio::use_awaitable, error));
    co_return line->cut(verdict.why);
  }
  line->stream().set_option(beast::websocket::stream_base::decorator([](beast::websocket::response_type& answer) {
    answer.set(http::field::sec_websocket_protocol, beast::string_view(call_protocol.data(), call_protocol.size()));
    answer.erase(http::field::server);
  }));
  const auto& request = parser.get();
  co_await line->stream().async_accept(request, asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return line->cut(error.message());
  welcome(line, verdict.worker);
}

}  // namespace hypertune::inline v0::k8s
