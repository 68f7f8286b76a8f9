// Part of hypertune::k8s: port forwarding.
#include "channel_socket.hpp"
#include "children.hpp"
#include "engine.hpp"
#include "status.hpp"

#include <hypertune/k8s/forward.hpp>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <mutex>

namespace hypertune::inline v0::k8s {

namespace detail {

namespace {
using asio::ip::tcp;
constexpr std::size_t max_forwarded = 256;  // most connections at a time
constexpr double ping_forwarded = 10;       // seconds between pings
constexpr double left_after_input = 30;     // seconds for remaining output after the client has sent everything
constexpr std::size_t forwarded_piece = 64 << 10U;

/// "/api/v1/…/portforward" uses two channels for each port; the first two bytes on each are the port number.
struct PortChannel {
  std::size_t head = 2;
  std::string_view after_head(std::string_view bytes) {
    const std::size_t skipped = std::min(head, bytes.size());
    head -= skipped;
    return bytes.substr(skipped);
  }
};
}  // namespace

struct ForwardTask {
  ForwardTask(std::shared_ptr<Client::State> e, PodPort w)
      : engine(std::move(e)), where(std::move(w)), acceptor(engine->io()), connections(engine->io()) {
    if (where.name_space.empty()) where.name_space = engine->access().name_space;
  }

  void listen(std::uint16_t on);
  asio::awaitable<void> run();
  asio::awaitable<void> accept_all();
  asio::awaitable<void> serve(tcp::socket local);
  asio::awaitable<std::string> pump(tcp::socket& local);
  static asio::awaitable<void> send(tcp::socket& local, ChannelSocket& socket, Wire& wire);
  asio::awaitable<void> ping(ChannelSocket& socket) const;
  void tell(std::string text) {
    const std::lock_guard lock(mutex);
    trouble = std::move(text);
  }

  std::shared_ptr<Client::State> engine;
  PodPort where;
  tcp::acceptor acceptor;
  std::uint16_t port = 0;
  Children connections;
  Task task;
  std::mutex mutex;
  std::string trouble;
};

void ForwardTask::listen(std::uint16_t on) {
  error_code error;
  const tcp::endpoint endpoint(asio::ip::address_v4::loopback(), on);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(64, error);
  if (error == asio::error::address_in_use)
    fail(Errc::busy, "cannot listen on 127.0.0.1:{}: somebody else does; choose another port", on);
  if (error) fail(Errc::io, "cannot listen on 127.0.0.1:{}: {}", on, error.message());
  ::fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
  port = acceptor.local_endpoint().port();
}

asio::awaitable<void> ForwardTask::run() {
  try {
    co_await accept_all();
  } catch (const boost::system::system_error&) {}  // it was ended
  error_code ignored;
  acceptor.close(ignored);  // NOLINT(bugprone-unused-return-value)
  co_await uncancellable();
  co_await connections.join();
}

asio::awaitable<void> ForwardTask::accept_all() {
  for (;;) {
    error_code error;
    tcp::socket local = co_await acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::operation_aborted) throw_cancelled();
    if (error || connections.count() >= max_forwarded) {
      tell(error ? "cannot accept a connection: " + error.message()
                 : fmt::format("more than {} connections at once", max_forwarded));
      local = tcp::socket(engine->io());
      co_await sleep_for(engine->io(), 0.1);  // too few descriptors, perhaps
      continue;
    }
    ::fcntl(local.native_handle(), F_SETFD, FD_CLOEXEC);
    local.set_option(tcp::no_delay(true), error);
    connections.spawn(serve(std::move(local)));
  }
}

asio::awaitable<void> ForwardTask::serve(tcp::socket local) {
  std::string said;
  try {
    said = co_await pump(local);
  } catch (const Error& e) { said = e.what(); }
  if (!said.empty()) tell(std::move(said));
}

asio::awaitable<std::string> ForwardTask::pump(tcp::socket& local) {
  const std::string doing = fmt::format("port-forward to {}/{}:{}", where.name_space, where.pod, where.port);
  const auto credential = co_await engine->credential();
  Dialed dialed = co_await engine->dial(credential, engine->options().connect);
  if (!dialed.wire) co_return fmt::format("{} ({})", dialed.failure.trouble, doing);
  const auto wire = std::move(dialed.wire);
  wire->expires_in(engine->options().attempt);
  ChannelSocket socket(wire);
  const RequestText request = engine->text_of(
      "GET", target_of(api_path({"api", "v1", "namespaces", where.name_space, "pods", where.pod, "portforward"}),
                       {{"ports", std::to_string(where.port)}}));
  const std::string protocols = "v4.channel.k8s.io";
  const auto opened = co_await socket.open(request, credential->headers, protocols);
  if (opened.status == 401) co_await engine->credential(credential->generation);  // for the next connection
  if (opened.status == 0) co_return fmt::format("{} ({})", opened.trouble, doing);
  if (opened.status != 101) co_return std::string(api_error(opened.status, opened.body, doing).what());
  wire->expires_never();
  Children children(engine->io());
  children.spawn(send(local, socket, *wire));
  children.spawn(ping(socket));
  std::string said;
  std::exception_ptr ended;
  try {
    const auto memory = std::make_unique_for_overwrite<char[]>(forwarded_piece);
    std::array<PortChannel, 2> channels;
    for (;;) {
      const auto into = asio::buffer(memory.get(), forwarded_piece);
      const auto read = co_await socket.read(into);
      if (read.over) break;
      if (read.channel >= channels.size()) continue;
      const auto bytes = channels[read.channel].after_head(read.bytes);
      if (read.channel == 1) {
        if (said.size() < 4096) said += bytes;
        continue;
      }
      error_code error;
      co_await asio::async_write(local, asio::buffer(bytes), asio::redirect_error(asio::use_awaitable, error));
      if (error) break;
    }
  } catch (...) { ended = std::current_exception(); }
  wire->close();
  error_code ignored;
  local.shutdown(tcp::socket::shutdown_send, ignored);  // NOLINT(bugprone-unused-return-value)
  co_await uncancellable();
  co_await children.join();
  if (ended) std::rethrow_exception(ended);
  co_return said.empty() ? said : fmt::format("{} ({})", one_line(said), doing);
}

asio::awaitable<void> ForwardTask::send(tcp::socket& local, ChannelSocket& socket, Wire& wire) {
  const auto memory = std::make_unique_for_overwrite<char[]>(forwarded_piece + 1);
  memory[0] = 0;
  for (;;) {
    error_code error;
    const auto into = asio::buffer(memory.get() + 1, forwarded_piece);
    const std::size_t size = co_await local.async_read_some(into, asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::eof) wire.expires_in(left_after_input);  // the protocol cannot transmit a half-close
    if (error) break;
    const asio::const_buffer message(memory.get(), size + 1);
    const std::string trouble = co_await socket.write(message);
    if (!trouble.empty()) break;
  }
}

asio::awaitable<void> ForwardTask::ping(ChannelSocket& socket) const {
  for (;;) {
    co_await sleep_for(engine->io(), ping_forwarded);
    co_await socket.ping();
  }
}

}  // namespace detail

PortForward Client::forward(const PodPort& where, std::uint16_t port) {
  auto task = std::make_shared<detail::ForwardTask>(state_, where);
  task->listen(port);
  task->task = state_->spawn(task->run());
  return PortForward(std::move(task));
}

std::uint16_t PortForward::port() const { return task_ ? task_->port : 0; }

std::string PortForward::trouble() const {
  if (!task_) return {};
  const std::lock_guard lock(task_->mutex);
  return task_->trouble;
}

void PortForward::end() noexcept {
  const auto task = std::exchange(task_, nullptr);
  if (!task) return;
  task->task.cancel(task->engine->io());
  task->task.join();
}

PortForward& PortForward::operator=(PortForward&& other) noexcept {
  if (this == &other) return *this;
  end();
  task_ = std::move(other.task_);
  return *this;
}

PortForward::~PortForward() { end(); }

}  // namespace hypertune::inline v0::k8s
