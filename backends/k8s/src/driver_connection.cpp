// DriverConnection: a connection of a pod to its driver.
#include "driver_connection.hpp"

#include "net/tls.hpp"

#include <hypertune/detail/as_duration.hpp>
#include <hypertune/detail/say.hpp>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/field.hpp>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <utility>

namespace hypertune::inline v0::k8s {
namespace {

namespace http = beast::http;
namespace websocket = beast::websocket;

beast::string_view seen(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

DriverConnection::DriverConnection(asio::io_context& io, const KeeperOptions& options, KeeperAgents& agents,
                                   DriverAddress driver)
    : io_(io),
      options_(options),
      agents_(agents),
      driver_(std::move(driver)),
      tls_(net::pinned_client_tls().release()),
      stream_(io),
      err_(io),
      log_(io),
      changed_(io.get_executor()),
      errors_over_(io.get_executor()) {}

void DriverConnection::close(std::string why) {
  if (!channel_) return;
  if (open_)
    channel_->close(std::move(why));
  else
    channel_->cut(std::move(why));
}

asio::awaitable<bool> DriverConnection::run() {
  channel_ = std::make_shared<WorkerChannel>(asio::ip::tcp::socket(io_), tls_);
  open_ = co_await connect();
  if (open_) {
    channel_->begin(options_.ping, options_.silence);
    // An agent that has stopped reading must not delay the end.
    channel_->on_over([this] {
      ErrorCode ignored;
      stream_.cancel(ignored);
    });
    co_await serve();
    co_await end_agent();
    why_ = channel_->why();
  }
  co_return open_;
}

// ---- Connecting to the driver ----

asio::awaitable<bool> DriverConnection::connect() {
  const WorkerChannel::Deadline deadline(channel_, options_.connect, "it does not answer");
  const bool shaken = co_await shake_hands();
  if (!shaken && channel_->over() && why_.empty()) why_ = channel_->why();
  if (!shaken) channel_->cut(why_);
  co_return shaken && !channel_->over();
}

asio::awaitable<bool> DriverConnection::shake_hands() {
  ErrorCode error;
  const auto ip = asio::ip::make_address(driver_.ip, error);
  const asio::ip::tcp::endpoint endpoint(ip, driver_.port);
  co_await channel_->socket().async_connect(endpoint, asio::redirect_error(asio::use_awaitable, error));
  if (error) {
    if (!channel_->over()) why_ = error.message();
    co_return false;
  }
  channel_->prepare();
  // While an agent accepts no data, this side does not read, and cannot notice that the driver is silent. But if the
  // driver is gone, the keep-alive messages are not acknowledged. (The driver sets no such limit: its data may have to
  // wait for an agent that accepts none.)
  const auto ms = static_cast<unsigned>(std::clamp(options_.silence * 1000, 100.0, 1e9));
  ::setsockopt(channel_->socket().native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
  auto& secured = channel_->stream().next_layer();
  secured.set_verify_mode(asio::ssl::verify_peer);
  // There is no certificate authority: only the certificate with the known fingerprint is accepted.
  secured.set_verify_callback([this](bool, asio::ssl::verify_context& context) {
    if (X509_STORE_CTX_get_error_depth(context.native_handle()) != 0) return false;
    pinned_ = net::has_fingerprint(X509_STORE_CTX_get_current_cert(context.native_handle()), driver_.fingerprint);
    return pinned_;
  });
  co_await secured.async_handshake(asio::ssl::stream_base::client, asio::redirect_error(asio::use_awaitable, error));
  const bool other = error.category() == asio::error::get_ssl_category() && !pinned_;
  if (error || !pinned_) {
    if (!channel_->over()) why_ = other ? net::pin_trouble("it", "another driver") : error.message();
    co_return false;
  }
  channel_->stream().set_option(websocket::stream_base::decorator([this](websocket::request_type& request) {
    request.set(http::field::authorization, "Bearer " + options_.token.reveal());
    request.set(http::field::sec_websocket_protocol, seen(worker_channel_protocol));
    request.erase(http::field::user_agent);
  }));
  websocket::response_type answer;
  const std::string host = driver_.ip.find(':') == std::string::npos ? driver_.ip : "[" + driver_.ip + "]";
  const std::string target = std::string(worker_channel_path) + options_.worker;
  co_await channel_->stream().async_handshake(answer, host, target, asio::redirect_error(asio::use_awaitable, error));
  if (error == websocket::error::upgrade_declined) {
    std::string said(answer.body().substr(0, 200));
    std::replace_if(said.begin(), said.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7F; }, '?');
    why_ = fmt::format("it answers {}: {}", answer.result_int(), said);
  } else if (error) {
    if (!channel_->over()) why_ = error.message();
  } else if (answer[http::field::sec_websocket_protocol] != seen(worker_channel_protocol)) {
    why_ = "it speaks another protocol than this pod's program";
    co_return false;
  }
  co_return !error;
}

// ---- The agent ----

asio::awaitable<void> DriverConnection::serve() {
  WorkerChannel::Received said(Part::begin, {});
  for (;;) {
    const bool more = co_await channel_->receive(said);
    if (!more) break;
    if (said.part == Part::begin && said.bytes.empty() && !begun_) {
      start_agent();
    } else if (said.part == Part::input && begun_) {
      // A write fails if the agent has ended or is about to. The end of its own stream reports that.
      static_cast<void>(co_await write_all(stream_, said.bytes));
    } else {
      channel_->cut("the driver sends what is none of the protocol's messages");
    }
  }
}

void DriverConnection::start_agent() {
  begun_ = true;
  hypertune::detail::Descriptor stream, err;
  try {
    auto streams = agents_.start(options_.agent);
    ErrorCode ignored;
    stream_.assign(asio::local::stream_protocol(), ::fcntl(streams.stream.get(), F_DUPFD_CLOEXEC, 0), ignored);
    err_.assign(asio::local::stream_protocol(), ::fcntl(streams.err.get(), F_DUPFD_CLOEXEC, 0), ignored);
  } catch (const std::exception& e) {
    hypertune::detail::say(std::string("hypertune: ") + e.what());
    return channel_->close(e.what());
  }
  pumps_ = 2;
  hypertune::detail::spawn(io_, pump_output(shared_from_this()), [self = shared_from_this()](const std::string& why) {
    self->channel_->close(why);
    self->pumped();
  });
  hypertune::detail::spawn(io_, pump_errors(shared_from_this()), [self = shared_from_this()](const std::string& why) {
    self->channel_->close(why);
    self->pumped_errors();
  });
}

void DriverConnection::pumped() {
  --pumps_;
  changed_.raise();
}

void DriverConnection::pumped_errors() {
  errors_ended_ = true;
  errors_over_.raise();
  pumped();
}

asio::awaitable<void> DriverConnection::pump_output(std::shared_ptr<DriverConnection> self) {
  co_await pump(self->channel_, self->stream_, Part::output, &self->spoken_);
  if (!self->channel_->closing()) co_await self->send_end();
  self->channel_->close("its agent has ended");
  self->pumped();
}

// Called when the agent has closed its stream: it has ended, or is about to.
asio::awaitable<void> DriverConnection::send_end() {
  constexpr double patience = 1;
  if (!errors_ended_) co_await errors_over_.wait(patience);
  const auto until = std::chrono::steady_clock::now() + hypertune::detail::as_duration(patience);
  while (agents_.child_runs() && std::chrono::steady_clock::now() < until) co_await changed_.wait(patience / 10);
  const auto status = agents_.child_status();
  if (spoken_ || !status) co_return;
  std::string text =
      WIFSIGNALED(*status)
          ? fmt::format("the agent was ended by signal {} before it said anything\n", WTERMSIG(*status))
          : fmt::format("the agent ended with exit code {} before it said anything\n", WEXITSTATUS(*status));
  text.insert(0, 1, ' ');
  static_cast<void>(co_await channel_->send(Part::errors, text.data(), text.size()));
}

// Copies the agent's standard error to the pod's log, and to the driver until the agent has sent any output.
asio::awaitable<void> DriverConnection::pump_errors(std::shared_ptr<DriverConnection> self) {
  constexpr std::size_t max_told = std::size_t{64} << 10U;
  auto& log = self->log_;
  ErrorCode error;
  log.assign(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0), error);
  std::array<char, 4096> piece{};  // a writable pipe takes at least this much (PIPE_BUF)
  std::size_t told = 0;
  for (;;) {
    const std::size_t n = co_await self->err_.async_read_some(asio::buffer(piece.data() + 1, piece.size() - 1),
                                                              asio::redirect_error(asio::use_awaitable, error));
    if (error) break;
    // A blocked reader of the log must not block this thread. A descriptor that cannot be polled (a file) accepts
    // everything.
    co_await log.async_wait(asio::posix::descriptor_base::wait_write, asio::redirect_error(asio::use_awaitable, error));
    static_cast<void>(!::write(STDERR_FILENO, piece.data() + 1, n));
    if (self->spoken_ || told > max_told || self->channel_->closing()) continue;
    told += n;
    static_cast<void>(co_await self->channel_->send(Part::errors, piece.data(), n + 1));
  }
  self->pumped_errors();
}

// The connection has ended. Closing the agent's stream makes it end its trials and itself.
asio::awaitable<void> DriverConnection::end_agent() {
  if (!begun_) co_return;
  ErrorCode ignored;
  stream_.close(ignored);
  const auto until = std::chrono::steady_clock::now() + hypertune::detail::as_duration(options_.leave);
  for (bool killed = false; agents_.child_runs();) {
    const std::chrono::duration<double> left = until - std::chrono::steady_clock::now();
    if (left.count() <= 0 && !std::exchange(killed, true)) {
      hypertune::detail::say("hypertune: the agent does not end after its connection has, and is killed");
      agents_.kill_child();
    }
    co_await changed_.wait(killed ? 1 : left.count());
  }
  // The agent's processes may still hold the other end for a moment, and the reader of the log may be blocked.
  err_.shutdown(LocalSocket::shutdown_receive, ignored);
  co_await changed_.wait(pumps_ > 0 ? 1 : 0);
  log_.close(ignored);
  while (pumps_ > 0) co_await changed_.wait();
}

}  // namespace hypertune::inline v0::k8s
