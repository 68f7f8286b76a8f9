// KeeperAgents: the agents of a pod: the keeper's own child, and those started by exec.
#pragma once

#include "worker_channel.hpp"

#include <hypertune/process/process_marks.hpp>
#include <hypertune/process/subprocess.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hypertune::inline v0::k8s {

/// Used on the keeper's one thread.
class KeeperAgents {
 public:
  /// `changed` is called when an agent has ended.
  KeeperAgents(asio::io_context& io, std::filesystem::path folder, std::function<void()> changed);

  /// Starts the child. `stream` is connected to its standard input and output, `err` to its standard error. Throws
  /// process::NotStarted.
  struct Streams {
    hypertune::detail::Descriptor stream, err;
  };
  Streams start(const std::vector<std::string>& command);
  bool child_runs() const { return child_ && !child_->status(); }
  /// The wait(2) status of the latest child, once it has ended.
  std::optional<int> child_status() const { return child_ ? child_->status() : std::nullopt; }
  void kill_child();

  /// Whether there is any agent at present; also begins to watch for the end of each agent found.
  bool any();
  void signal(int number);
  /// Reaps orphans that have ended, and the child.
  void reap();

 private:
  void watch(const process::MarkedProcess& agent);

  asio::io_context& io_;
  std::filesystem::path folder_;
  std::function<void()> changed_;
  std::optional<process::Subprocess> child_;
  std::vector<pid_t> watched_;
};

}  // namespace hypertune::inline v0::k8s
