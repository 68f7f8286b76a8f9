// remote(): trials on the hosts of a list, over the user's own ssh: connections, shipping and agents in one.
#pragma once

#include <hypertune/execute/executor.hpp>
#include <hypertune/local/process_options.hpp>
#include <hypertune/ssh/executor.hpp>
#include <hypertune/ssh/host_pool.hpp>
#include <hypertune/ssh/host_source.hpp>
#include <hypertune/ssh/options.hpp>
#include <hypertune/ssh/shipping.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::ssh {

/// Meant for designated initialisers: `{.hosts = {"host1", "host2"}}`.
struct RemoteSetup {
  /// Not given: those of HostSource::environment(), reached by the ssh_config that HYPERTUNE_SSH_CONFIG names unless
  /// `ssh.config` does, and warned of their end where HYPERTUNE_NOTICE_URL says unless `remote` does.
  HostSource hosts = {};
  SshOptions ssh = {};
  /// What runs on the hosts: a program that becomes an agent when it is called with the arguments below and then
  /// `--hypertune-agent` (a Runtime does that). Empty: this program itself.
  std::filesystem::path program = {};
  std::vector<std::string> arguments = {};
  std::vector<FileMount> mounts = {};  ///< relative places are below the working folder
  /// Programs among them, by where they are here: checked for architecture and libraries before anything runs.
  std::vector<std::filesystem::path> programs = {};
  /// What has to be there before a trial runs: names to be found in PATH, or paths from the working folder.
  std::vector<std::string> needs = {};
  std::string directory = {};  ///< where the agents and commands work; empty: the home folder
  HostSpec limits = {};        ///< for what a host of the list does not say itself; its name does not matter
  ShipOptions ship = {};
  RemoteOptions remote = {.patience = {.connect = 3600}};  ///< the time to connect includes that to ship
  std::function<void(const std::string&)> notice = {};  ///< for troubles that end nothing: a list that cannot be read
};

namespace detail {
/// What the environment says of hosts, where nothing else does.
RemoteSetup with_environment(RemoteSetup setup);
}  // namespace detail

/// An Executor for the hosts of a list. Nothing is connected before hosts() or start() is called; all connections end
/// with it. Hosts that join the list while it runs are taken up, those that leave are drained. What ends nothing (a
/// list that cannot be read for now, a clock that is wrong) is raised as a Notice.
class RemoteExecutor {
 public:
  explicit RemoteExecutor(RemoteSetup setup);
  RemoteExecutor(RemoteExecutor&&) noexcept;
  RemoteExecutor& operator=(RemoteExecutor&&) noexcept;
  ~RemoteExecutor();

  std::vector<Host> hosts() const;
  Seconds now() const;
  void start(ExecutorStart start);
  void perform(Command command);
  void wait(Seconds deadline);
  void notify();
  void shutdown();
  std::string name() const { return "ssh"; }
  std::vector<HostAccount> accounts() const;

 private:
  class State;
  std::shared_ptr<State> self_;
};

static_assert(Executor<RemoteExecutor>);

/// What an agent may use of its host, as the text after `--hypertune-agent` and back.
std::string agent_limits_text(const HostSpec& host);
local::ProcessOptions agent_limits(const std::string& text);

}  // namespace hypertune::ssh

namespace hypertune {
using ssh::RemoteExecutor;
using ssh::RemoteSetup;

/// `ht::remote({.hosts = {"host1", "host2"}})`: trials as processes on these hosts.
inline RemoteExecutor remote(RemoteSetup setup = {}) { return RemoteExecutor(std::move(setup)); }
}  // namespace hypertune

#ifndef HYPERTUNE_SSH_COMPILED
#include <hypertune/ssh/impl/remote.hpp>
#endif
