// AgentListener: where the driver accepts agents in pods.
#include "listener_state.hpp"
#include "net/tls.hpp"

#include <hypertune/detail/as_duration.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/detail/signal_block.hpp>
#include <hypertune/error.hpp>
#include <hypertune/net/tls_identity.hpp>

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include <utility>

namespace hypertune::inline v0::k8s {
namespace {

TlsIdentity identity_of(const ListenerOptions& options) {
  if (options.token.empty()) fail(Errc::usage, "a listener for pods needs a token that workers must show");
  return TlsIdentity::generate(options.experiment);
}

}  // namespace

AgentListener::State::State(ListenerOptions given)
    : options(std::move(given)), tls(asio::ssl::context::tls), acceptor(io), left(io.get_executor()) {
  const auto identity = identity_of(options);
  tls = asio::ssl::context(net::server_tls(identity).release());
  fingerprint = identity.fingerprint();
  ErrorCode error;
  const auto address = asio::ip::make_address(options.address, error);
  if (error) fail(Errc::usage, "cannot listen at '{}', which is no IP address", options.address);
  const asio::ip::tcp::endpoint endpoint(address, options.port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::ip::tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) port = acceptor.local_endpoint(error).port();
  if (error)
    fail(error == asio::error::address_in_use ? Errc::busy : Errc::io, "cannot listen at {} port {}: {}",
         options.address, options.port, error.message());
  keep_accepting();
  const hypertune::detail::SignalBlock block;
  thread = std::thread([this] {
    hypertune::detail::run_handlers(io, [this](const std::string& why) {
      failed.note(why);
      if (!accepting) keep_accepting();
    });
  });
}

// A connection that cannot be taken must not keep others out.
void AgentListener::State::keep_accepting() {
  hypertune::detail::spawn(io, accept_all(std::make_unique<hypertune::detail::Exists>(accepting)),
                           [this](const std::string& why) {
                             failed.note(why);
                             keep_accepting();
                           });
}

AgentListener::State::~State() {
  close();
  thread.join();
}

void AgentListener::State::close() {
  {
    const std::lock_guard lock(mutex);
    if (std::exchange(closed, true)) return;
    for (const auto& [name, place] : places) {
      if (place->waiting)
        refuse(std::exchange(place->waiting, nullptr), remote::FailureClass::transient, "the driver is ending");
    }
    changed.notify_all();
  }
  asio::post(io, [this] {
    ErrorCode ignored;
    acceptor.close(ignored);
    for (auto& handshake : handshakes) handshake.channel->cut("the driver is ending");
    std::vector<std::shared_ptr<WorkerConnection>> connections;
    {
      const std::lock_guard lock(mutex);
      for (const auto& [name, place] : places)
        if (place->connection) connections.push_back(place->connection);
    }
    for (const auto& connection : connections) connection->cut("the driver is ending");
    left.raise();
  });
}

// ---- Streams and the connections that carry them ----

std::shared_ptr<PendingStream> AgentListener::State::request(Place& place, StreamEnds ends) {
  const auto pending = std::make_shared<PendingStream>();
  if (place.waiting)
    refuse(std::exchange(place.waiting, nullptr), remote::FailureClass::transient, "a newer stream takes its place");
  if (!place.connection || place.carried) {
    pending->ends = std::move(ends);
    place.waiting = pending;
    return pending;
  }
  pending->taken = true;
  place.carried = pending;
  const auto given = std::make_shared<StreamEnds>(std::move(ends));
  asio::post(io, [connection = place.connection, given] { connection->carry(std::move(*given)); });
  return pending;
}

void AgentListener::State::refuse(const std::shared_ptr<PendingStream>& pending, remote::FailureClass failure,
                                  const std::string& why) {
  pending->over = true;
  pending->failure = failure;
  pending->why = why;
  give_up(std::move(pending->ends), why);
  pending->ends = {};
  changed.notify_all();
}

// Called when the last dialer of a worker is destroyed.
void AgentListener::State::drop(Place& place) {
  const std::lock_guard lock(mutex);
  if (const auto found = places.find(place.worker); found != places.end() && found->second == &place)
    places.erase(found);
  if (place.waiting) refuse(std::exchange(place.waiting, nullptr), remote::FailureClass::transient, "it is not wanted");
  if (place.connection)
    asio::post(io, [connection = std::move(place.connection)] {
      connection->close("the driver does not want this worker any more");
    });
}

// Ends a stream that its owner does not need any more.
void AgentListener::State::end(Place& place, const std::shared_ptr<PendingStream>& pending, double grace) {
  std::unique_lock lock(mutex);
  if (place.waiting == pending) {
    refuse(std::exchange(place.waiting, nullptr), remote::FailureClass::transient, "it is not wanted any more");
    return;
  }
  const auto is_over = [&] { return pending->over || closed; };
  if (grace > 0 && changed.wait_for(lock, hypertune::detail::as_duration(grace), is_over)) return;
  if (is_over() || place.carried != pending || !place.connection) return;
  asio::post(io, [connection = place.connection] { connection->cut("the driver has ended it"); });
  // The listener's thread closes its sockets soon. Wait for that: afterwards nobody may see the worker as occupied.
  changed.wait_for(lock, hypertune::detail::as_duration(10), is_over);
}

void AgentListener::State::accept_worker(const std::shared_ptr<WorkerChannel>& channel, const std::string& worker) {
  std::shared_ptr<WorkerConnection> connection, older;
  std::shared_ptr<PendingStream> pending;
  std::function<void()> connected;
  {
    const std::lock_guard lock(mutex);
    const auto found = places.find(worker);
    if (found == places.end() || closed) return channel->close("the driver does not know this worker");
    auto& place = *found->second;
    connection = std::make_shared<WorkerConnection>(channel, [this](WorkerConnection& which) { ended(which); });
    older = std::exchange(place.connection, connection);
    if (place.carried) place.carried->over = true;
    place.carried = std::exchange(place.waiting, nullptr);
    pending = place.carried;
    if (pending) pending->taken = true;
    connected = place.connected;
    changed.notify_all();
  }
  if (connected) connected();
  if (older) older->cut("a newer connection of the same worker takes its place");
  connection->start(options.ping, options.silence);
  if (pending) connection->carry(std::move(pending->ends));
}

void AgentListener::State::ended(WorkerConnection& connection) {
  const std::lock_guard lock(mutex);
  for (const auto& [name, place] : places) {
    if (place->connection.get() != &connection) continue;
    if (place->carried) place->carried->over = true;
    place->carried = nullptr;
    place->connection = nullptr;
    break;
  }
  changed.notify_all();
}

void AgentListener::State::refused_token(const std::string& from) {
  constexpr double interval = 60;
  ++wrong_tokens;
  const double now = hypertune::detail::steady_seconds();
  if (!options.say || now - told < interval) return;
  told = now;
  options.say(fmt::format("{} connection{} to the port for workers had no token or a wrong one, the last from {}",
                          wrong_tokens, wrong_tokens == 1 ? "" : "s", from));
  wrong_tokens = 0;
}

// ---- The handle ----

AgentListener::AgentListener(ListenerOptions options) : state_(std::make_shared<State>(std::move(options))) {}

std::uint16_t AgentListener::port() const { return state_->port; }
const std::string& AgentListener::fingerprint() const { return state_->fingerprint; }

DriverAddress AgentListener::address(std::string ip) const {
  return {.ip = std::move(ip), .port = state_->port, .fingerprint = state_->fingerprint};
}

bool AgentListener::connected(const std::string& worker) const {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->places.find(worker);
  return found != state_->places.end() && found->second->connection;
}

std::size_t AgentListener::connections() const {
  const std::lock_guard lock(state_->mutex);
  std::size_t count = 0;
  for (const auto& [name, place] : state_->places) count += place->connection ? 1 : 0;
  return count;
}

void AgentListener::close() { state_->close(); }

}  // namespace hypertune::inline v0::k8s
