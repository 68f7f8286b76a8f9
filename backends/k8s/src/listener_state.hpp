// AgentListener's internal state: handshakes in progress, connected workers, and streams that wait for them.
#pragma once

#include "worker_connection.hpp"

#include <hypertune/k8s/agent_listener.hpp>
#include <hypertune/net/spawn.hpp>
#include <hypertune/net/wakeup.hpp>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>

#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace hypertune::inline v0::k8s {

/// A stream that was given out, or is about to be. It may still wait for its worker's connection.
struct PendingStream {
  StreamEnds ends;
  bool taken = false;  ///< a connection carries it
  bool over = false;   ///< no connection carries it any more, or ever will
  remote::FailureClass failure = remote::FailureClass::transient;
  std::string why;  ///< set if it is over without having been taken
};

/// What is known about a worker. Guarded by the listener's mutex.
struct ReverseDialer::Place {
  Place(std::shared_ptr<AgentListener::State> listener, std::string worker, double patience,
        std::function<void()> connected);
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place();

  const std::shared_ptr<AgentListener::State> listener;
  const std::string worker;
  const double patience;
  const std::function<void()> connected;

  std::string why;  // why it is not connected yet
  struct Refusal {
    remote::FailureClass failure;
    std::string why;
  };
  std::optional<Refusal> refused;
  std::shared_ptr<WorkerConnection> connection;  // its connection
  std::shared_ptr<PendingStream> carried;        // what that connection carries
  std::shared_ptr<PendingStream> waiting;
};

/// Destroyed by the holder of the last handle, never on the listener's own thread, where coroutines have a plain
/// pointer.
struct AgentListener::State {
  using Place = ReverseDialer::Place;

  explicit State(ListenerOptions options);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  void close();

  // ---- Called on any thread ----
  /// Call with the mutex held. A new stream for this worker, carried by its present connection if that is free.
  std::shared_ptr<PendingStream> request(Place& place, StreamEnds ends);
  /// Call with the mutex held. Ends a stream that no connection will carry.
  void refuse(const std::shared_ptr<PendingStream>& pending, remote::FailureClass failure, const std::string& why);
  void drop(Place& place);
  void end(Place& place, const std::shared_ptr<PendingStream>& pending, double grace);

  // ---- Called on the listener's own thread ----
  void keep_accepting();
  asio::awaitable<void> accept_all(std::unique_ptr<hypertune::detail::Exists> exists);
  asio::awaitable<void> make_room();
  asio::awaitable<void> run_handshake(std::shared_ptr<WorkerChannel> channel);
  asio::awaitable<void> authenticate(std::shared_ptr<WorkerChannel> channel);
  void accept_worker(const std::shared_ptr<WorkerChannel>& channel, const std::string& worker);
  void ended(WorkerConnection& connection);
  void refused_token(const std::string& from);

  ListenerOptions options;
  asio::io_context io;
  asio::ssl::context tls;
  asio::ip::tcp::acceptor acceptor;
  bool accepting = false;
  hypertune::detail::FailedConnections failed{"the port for workers"};
  hypertune::detail::Wakeup left;  // a handshake has ended
  std::string fingerprint;
  std::uint16_t port = 0;
  struct Handshake {
    std::shared_ptr<WorkerChannel> channel;
    double since;
  };
  std::list<Handshake> handshakes;  // connections in their handshakes, the oldest first
  double told = -1e9;               // when wrong tokens were last reported
  int wrong_tokens = 0;             // since then

  std::mutex mutex;
  std::condition_variable_any changed;
  std::map<std::string, Place*> places;
  bool closed = false;

  std::thread thread;
};

}  // namespace hypertune::inline v0::k8s
