// WorkerConnection: a worker's connection, on the driver's side.
#pragma once

#include "worker_channel.hpp"

#include <hypertune/detail/descriptor.hpp>

#include <functional>
#include <memory>
#include <string>

namespace hypertune::inline v0::k8s {

/// The listener's ends of a stream to an agent, before and while a worker's connection carries it.
struct StreamEnds {
  hypertune::detail::Descriptor stream, err;
};

/// Used on the listener's one thread.
class WorkerConnection : public std::enable_shared_from_this<WorkerConnection> {
 public:
  /// `ended` is called once, when the channel has ended.
  WorkerConnection(std::shared_ptr<WorkerChannel> channel, std::function<void(WorkerConnection&)> ended);

  /// Called when the worker is accepted: begins to read.
  void start(double ping, double silence);
  /// Starts an agent in the pod and connects its streams to `ends`.
  void carry(StreamEnds ends);
  /// Closes the connection properly, which ends the agent.
  void close(std::string why) { channel_->close(std::move(why)); }
  void cut(std::string why) { channel_->cut(std::move(why)); }

 private:
  static asio::awaitable<void> listen(std::shared_ptr<WorkerConnection> self);
  static asio::awaitable<void> speak(std::shared_ptr<WorkerConnection> self);
  asio::awaitable<void> take(WorkerChannel::Received said);
  void finish();

  std::shared_ptr<WorkerChannel> channel_;
  std::function<void(WorkerConnection&)> ended_;
  LocalSocket stream_, err_;
  bool carries_ = false;
};

/// Ends a stream that will not be carried, after writing the reason to its `err`.
void give_up(StreamEnds ends, const std::string& why);

}  // namespace hypertune::inline v0::k8s
