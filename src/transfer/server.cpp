// CheckpointServer: accepts connections and runs a thread for each.
#include "answers.hpp"
#include "sockets.hpp"
#include "wire.hpp"

#include <hypertune/checkpoint/transfer/server.hpp>
#include <hypertune/error.hpp>
#include <hypertune/net/failed_connections.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace {

using Clock = detail::Wire::Clock;

void require_sound(const CheckpointServerOptions& options) {
  if (options.stores.empty()) fail(Errc::usage, "a CheckpointServer needs a store to serve");
  if (options.max_connections < 1 || options.max_unauthenticated < 1)
    fail(Errc::usage, "a CheckpointServer must allow one connection at least");
  for (const auto wait : {options.request_timeout, options.idle_timeout, options.stall_timeout})
    if (wait.count() <= 0) fail(Errc::usage, "the time limits of a CheckpointServer must be above 0");
  if (options.stop_grace.count() < 0) fail(Errc::usage, "the grace of a CheckpointServer cannot be negative");
}

}  // namespace

class CheckpointServer::State {
 public:
  explicit State(CheckpointServerOptions options) : shared_((require_sound(options), std::move(options))) {
    const auto& o = shared_.options;
    if (o.tls) tls_ = net::server_tls(*o.tls);
    if (const auto* local = std::get_if<UnixSocket>(&o.listen)) {
      listener_.emplace(*local);
      endpoint_.address = *local;
    } else if (const auto* tcp = std::get_if<Tcp>(&o.listen)) {
      listener_.emplace(*tcp);
      if (!listener_->loopback() && o.token.empty())
        fail(Errc::usage, "listening at '{}', beyond this machine, needs a token", tcp->address);
      endpoint_.address = Tcp{.address = tcp->address, .port = listener_->port()};
    }
    if (o.tls) endpoint_.certificate = o.tls->fingerprint();
    endpoint_.token = o.token;
    acceptor_ = std::thread([this] { accept(); });
  }

  ~State() { stop(); }

  void stop();
  void serve(detail::Descriptor socket);
  const Endpoint& endpoint() const { return endpoint_; }
  detail::ServerShared& shared() { return shared_; }
  Counters counters() {
    const std::lock_guard lock(mutex_);
    return {.connections = accepted_,
            .open = connections_.size() - ended_,
            .requests = shared_.requests,
            .refused = shared_.refused,
            .bytes_sent = shared_.bytes_sent};
  }

 private:
  struct Connection {
    detail::Wire wire;
    std::thread thread;
    // Guarded by the mutex:
    Clock::time_point since = Clock::now();  // start of the connection, or its last request
    bool authenticated = false, idle = true, ended = false;
  };

  void accept();
  void accept_next();
  void make_room();
  void begin(detail::Descriptor socket);
  void run(Connection& connection);
  void reap(bool all);

  detail::ServerShared shared_;
  net::SslContext tls_;
  std::optional<detail::Listener> listener_;
  Endpoint endpoint_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Connection> connections_;  // including ended ones, until reap()
  std::size_t ended_ = 0;              // how many of them were told to end, or have ended
  std::vector<Connection*> finished_;  // connections whose threads are about to return
  std::uint64_t accepted_ = 0;
  bool over_ = false;  // no more connections are started
  std::mutex stop_mutex_;
  detail::FailedConnections failed_{"the server of checkpoints"};
  detail::Alarm wake_;  // a connection has ended; cleared by the acceptor
  std::thread acceptor_;
};

void CheckpointServer::State::accept() {
  const detail::NoSigpipe no_signal;
  for (;;) {
    pollfd fds[3] = {{.fd = listener_ ? listener_->descriptor() : -1, .events = POLLIN, .revents = 0},
                     {.fd = shared_.stop.descriptor(), .events = POLLIN, .revents = 0},
                     {.fd = wake_.descriptor(), .events = POLLIN, .revents = 0}};
    ::poll(fds, 3, -1);
    if (fds[1].revents != 0) return;
    try {
      if (fds[2].revents != 0) {
        wake_.clear();
        reap(false);
      }
      if (fds[0].revents != 0) accept_next();
    } catch (...) {  // there is no memory or no thread for one more
      shared_.refused += 1;
      failed_.note(std::current_exception());
    }
  }
}

void CheckpointServer::State::accept_next() {
  detail::Descriptor socket = detail::accept_from(listener_->descriptor());
  if (socket) {
    begin(std::move(socket));
  } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
    {
      const std::lock_guard lock(mutex_);
      make_room();  // a descriptor becomes free when its thread has ended
    }
    pollfd stop{.fd = shared_.stop.descriptor(), .events = POLLIN, .revents = 0};
    ::poll(&stop, 1, 20);
  }
}

/// Ends the least useful connection: the oldest unauthenticated one, or else the one that has been idle longest. The
/// mutex must be held.
void CheckpointServer::State::make_room() {
  Connection* chosen = nullptr;
  for (Connection& each : connections_) {
    if (each.ended || (each.authenticated && !each.idle)) continue;
    if (chosen == nullptr ||
        std::pair(each.authenticated, each.since) < std::pair(chosen->authenticated, chosen->since))
      chosen = &each;
  }
  if (chosen == nullptr) return;
  ::shutdown(chosen->wire.descriptor(), SHUT_RDWR);
  chosen->authenticated = chosen->idle = false;
  chosen->ended = true;  // must not be chosen again; its thread will notice
  ++ended_;
}

void CheckpointServer::State::begin(detail::Descriptor socket) {
  const std::lock_guard lock(mutex_);
  if (over_) return;
  const auto& o = shared_.options;
  const auto unauthenticated = std::count_if(connections_.begin(), connections_.end(),
                                             [](const Connection& each) { return !each.ended && !each.authenticated; });
  const auto open = connections_.size() - ended_;
  if (unauthenticated >= o.max_unauthenticated || open >= static_cast<std::size_t>(o.max_connections)) make_room();
  // Threads that were told to end but have not ended also count, because an attack could accumulate them.
  if (connections_.size() >=
      static_cast<std::size_t>(o.max_connections) + static_cast<std::size_t>(o.max_unauthenticated)) {
    shared_.refused += 1;
    return;
  }
  ++accepted_;
  Connection& connection = connections_.emplace_back();
  connection.wire = detail::Wire(std::move(socket), shared_.cut.descriptor());
  try {
    finished_.reserve(connections_.size());  // so that no thread fails at its end
    connection.thread = std::thread([this, &connection] { run(connection); });
  } catch (...) {
    connections_.pop_back();
    shared_.refused += 1;
    failed_.note(std::current_exception());
  }
}

void CheckpointServer::State::run(Connection& connection) {
  const detail::NoSigpipe no_signal;
  const auto update = [&](auto change) {
    const std::lock_guard lock(mutex_);
    if (!connection.ended) change();
  };
  try {
    detail::Wire::ErrorCode error;
    if (tls_) {
      connection.wire.set_cancel(shared_.stop.descriptor());
      connection.wire.set_deadline(Clock::now() + shared_.options.request_timeout);
      connection.wire.start_tls(tls_.get(), true, {}, error);
    }
    if (error)
      shared_.refused += 1;
    else
      detail::handle_requests(
          shared_, connection.wire, [&] { update([&] { connection.authenticated = true; }); },
          [&](bool idle) {
            update([&] {
              connection.idle = idle;
              if (connection.authenticated) connection.since = Clock::now();
            });
          });
  } catch (...) {  // out of memory or descriptors: only this connection fails
    shared_.refused += 1;
    failed_.note(std::current_exception());
  }
  ::shutdown(connection.wire.descriptor(), SHUT_RDWR);
  {
    const std::lock_guard lock(mutex_);
    if (!connection.ended) ++ended_;
    connection.ended = true;
    finished_.push_back(&connection);
  }
  changed_.notify_all();
  wake_.raise();
}

void CheckpointServer::State::serve(detail::Descriptor socket) {
  if (!socket || ::fcntl(socket.get(), F_SETFL, O_NONBLOCK) != 0) fail(Errc::usage, "this is no socket to serve");
  begin(std::move(socket));
}

/// Joins the threads of ended connections. `all`: waits until all have ended.
void CheckpointServer::State::reap(bool all) {
  std::unique_lock lock(mutex_);
  if (all) changed_.wait(lock, [&] { return finished_.size() == connections_.size(); });
  std::list<Connection> gone;
  for (Connection* each : finished_) {
    const auto at =
        std::find_if(connections_.begin(), connections_.end(), [&](const Connection& c) { return &c == each; });
    gone.splice(gone.end(), connections_, at);
    --ended_;
  }
  finished_.clear();
  lock.unlock();
  for (Connection& each : gone) each.thread.join();
}

void CheckpointServer::State::stop() {
  const std::lock_guard only_one(stop_mutex_);
  if (!acceptor_.joinable()) return;
  shared_.stop.raise();
  acceptor_.join();
  listener_.reset();
  {
    std::unique_lock lock(mutex_);
    over_ = true;
    changed_.wait_for(lock, shared_.options.stop_grace, [&] { return finished_.size() == connections_.size(); });
  }
  shared_.cut.raise();
  shared_.checkpoints.stop();
  reap(true);
}

CheckpointServer::CheckpointServer(CheckpointServerOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
CheckpointServer::~CheckpointServer() = default;

const Endpoint& CheckpointServer::endpoint() const { return state_->endpoint(); }
void CheckpointServer::set_rate_limit(std::uint64_t bytes_per_second) {
  state_->shared().rate.set_rate(bytes_per_second);
}
CheckpointServer::Counters CheckpointServer::counters() const { return state_->counters(); }
void CheckpointServer::serve(int socket) { state_->serve(detail::Descriptor(socket)); }
void CheckpointServer::stop() { state_->stop(); }

void CheckpointServer::prepare(const CheckpointInfo& info) {
  if (auto served = state_->shared().checkpoints.find(info)) state_->shared().checkpoints.prepare(served);
}

}  // namespace hypertune::inline v0
