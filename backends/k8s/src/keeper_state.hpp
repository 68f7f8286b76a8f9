// PodKeeper: the first process of a worker's pod.
#pragma once

#include "driver_connection.hpp"
#include "keeper_agents.hpp"

#include <hypertune/k8s/pod_keeper.hpp>
#include <hypertune/net/spawn.hpp>
#include <hypertune/net/wakeup.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <memory>
#include <optional>
#include <random>
#include <string>

namespace hypertune::inline v0::k8s {

class PodKeeper {
 public:
  explicit PodKeeper(KeeperOptions options);
  /// Runs until the end of the pod; returns the exit code.
  int run();

 private:
  bool connects_to_driver() const { return !options_.token.empty(); }
  void wait_for_signal();
  void on_stop_signal(int number);
  void look();
  bool driver_is_there();
  asio::awaitable<void> keep_looking();
  asio::awaitable<void> keep_connecting();
  asio::awaitable<void> pause(double seconds, std::optional<DriverAddress> tried);
  std::optional<DriverAddress> find_driver(std::string& why) const;
  void say_trouble(const std::string& where, const std::string& why);
  void fail_all(const std::string& why);
  void finish();

  KeeperOptions options_;
  asio::io_context io_{1};
  asio::signal_set signals_;
  KeeperAgents agents_;
  hypertune::detail::Wakeup looking_, pausing_;
  std::shared_ptr<DriverConnection> connection_;  // the current attempt or connection
  bool connecting_ = false;
  int stop_signals_ = 0;   // how often it was asked to end
  int code_ = 0;           // its exit code
  double driver_seen_at_;  // when a driver was last there
  std::string trouble_;
  double trouble_told_ = -1e9;
  std::minstd_rand random_;
};

}  // namespace hypertune::inline v0::k8s
