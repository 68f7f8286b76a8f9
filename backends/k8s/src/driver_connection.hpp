// DriverConnection: a connection of a pod to its driver, from the attempt to connect to its end, and the agent that
// uses it.
#pragma once

#include "keeper_agents.hpp"
#include "worker_channel.hpp"

#include <hypertune/k8s/driver_address.hpp>
#include <hypertune/k8s/pod_keeper.hpp>
#include <hypertune/net/wakeup.hpp>

#include <boost/asio/io_context.hpp>

#include <memory>
#include <string>

namespace hypertune::inline v0::k8s {

/// Used on the keeper's one thread, and only once.
class DriverConnection : public std::enable_shared_from_this<DriverConnection> {
 public:
  DriverConnection(asio::io_context& io, const KeeperOptions& options, KeeperAgents& agents, DriverAddress driver);

  /// Connects, serves the driver, and ends the agent that it has started. Returns whether the driver accepted the pod.
  asio::awaitable<bool> run();
  /// Closes the connection properly.
  void close(std::string why);
  /// Whether the driver has accepted the pod and the connection is open.
  bool is_connected() const { return open_ && channel_ && !channel_->closing(); }
  /// To be called when an agent has ended.
  void look() { changed_.raise(); }
  const DriverAddress& driver() const { return driver_; }
  /// Why it ended.
  const std::string& why() const { return why_; }

 private:
  asio::awaitable<bool> connect();
  asio::awaitable<bool> shake_hands();
  asio::awaitable<void> serve();
  void start_agent();
  asio::awaitable<void> end_agent();
  static asio::awaitable<void> pump_output(std::shared_ptr<DriverConnection> self);
  static asio::awaitable<void> pump_errors(std::shared_ptr<DriverConnection> self);
  asio::awaitable<void> send_end();
  void pumped();
  void pumped_errors();

  asio::io_context& io_;
  const KeeperOptions& options_;
  KeeperAgents& agents_;
  DriverAddress driver_;
  asio::ssl::context tls_;
  std::shared_ptr<WorkerChannel> channel_;
  LocalSocket stream_, err_;
  asio::posix::stream_descriptor log_;
  hypertune::detail::Wakeup changed_, errors_over_;
  std::string why_;
  bool open_ = false, begun_ = false, spoken_ = false, pinned_ = false, errors_ended_ = false;
  int pumps_ = 0;  // coroutines that use this
};

}  // namespace hypertune::inline v0::k8s
