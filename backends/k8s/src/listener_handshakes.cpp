// AgentListener: accepting connections and authenticating workers.
#include "connect_request.hpp"
#include "listener_state.hpp"

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/net/wakeup.hpp>

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

asio::awaitable<void> AgentListener::State::accept_all(
    [[maybe_unused]] std::unique_ptr<hypertune::detail::Exists> exists) {
  hypertune::detail::Wakeup again(io.get_executor());
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
    try {
      const auto channel = std::make_shared<WorkerChannel>(std::move(socket), tls);
      hypertune::detail::spawn(io, run_handshake(channel), [channel](const std::string& why) { channel->cut(why); });
    } catch (...) { failed.note(std::current_exception()); }
  }
}

// Clients that send nothing must not keep others out. At the limit, the oldest connection has one second, which is far
// more than a worker needs; further connections wait in the kernel.
asio::awaitable<void> AgentListener::State::make_room() {
  constexpr double patience = 1;
  while (acceptor.is_open() && handshakes.size() >= options.handshakes) {
    const double age = hypertune::detail::steady_seconds() - handshakes.front().since;
    if (age >= patience) handshakes.front().channel->cut("others wait");  // it removes itself from the list
    co_await left.wait(age >= patience ? 1e7 : patience - age);
  }
}

asio::awaitable<void> AgentListener::State::run_handshake(std::shared_ptr<WorkerChannel> channel) {
  const auto handshake = handshakes.insert(handshakes.end(), Handshake{channel, hypertune::detail::steady_seconds()});
  try {
    co_await authenticate(channel);
  } catch (const std::exception& e) {
    failed.note(e.what());
    channel->cut(e.what());
  }
  handshakes.erase(handshake);
  left.raise();
}

asio::awaitable<void> AgentListener::State::authenticate(std::shared_ptr<WorkerChannel> channel) {
  const WorkerChannel::Deadline deadline(channel, options.handshake, "it has not shown its token in time");
  channel->prepare();
  ErrorCode error;
  auto& secured = channel->stream().next_layer();
  co_await secured.async_handshake(asio::ssl::stream_base::server, asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return channel->cut(error.message());
  beast::flat_buffer buffer(std::size_t{2} * longest_header);
  http::request_parser<http::empty_body> parser;
  parser.header_limit(longest_header);
  co_await http::async_read(secured, buffer, parser, asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return channel->cut(error.message());
  auto decision = check_connect_request(parser.get(), options.token);
  if (decision.status == http::status::unauthorized) {
    ErrorCode unknown;
    refused_token(channel->socket().remote_endpoint(unknown).address().to_string());
  }
  if (decision.status == http::status::switching_protocols) {
    const std::lock_guard lock(mutex);
    if (!places.contains(decision.worker) || closed) {
      decision.status = http::status::not_found;
      decision.why = "the driver does not know this worker, or not yet";
    }
  }
  if (decision.status != http::status::switching_protocols) {
    http::response<http::string_body> answer(decision.status, 11);
    answer.set(http::field::content_type, "text/plain");
    if (decision.status == http::status::unauthorized) answer.set(http::field::www_authenticate, "Bearer");
    answer.keep_alive(false);
    answer.body() = decision.why;
    answer.prepare_payload();
    co_await http::async_write(secured, answer, asio::redirect_error(asio::use_awaitable, error));
    co_return channel->cut(decision.why);
  }
  channel->stream().set_option(beast::websocket::stream_base::decorator([](beast::websocket::response_type& answer) {
    answer.set(http::field::sec_websocket_protocol,
               beast::string_view(worker_channel_protocol.data(), worker_channel_protocol.size()));
    answer.erase(http::field::server);
  }));
  const auto& request = parser.get();
  co_await channel->stream().async_accept(request, asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return channel->cut(error.message());
  accept_worker(channel, decision.worker);
}

}  // namespace hypertune::inline v0::k8s
