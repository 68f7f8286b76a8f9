// SshExecutor: trials on the hosts of a list, over the user's own ssh: connections, shipping and agents in one.
#pragma once

#include <hypertune/execute/executor.hpp>
#include <hypertune/remote/executor.hpp>
#include <hypertune/remote/host_source.hpp>
#include <hypertune/remote/listed_executor.hpp>
#include <hypertune/ssh/options.hpp>
#include <hypertune/ssh/shipping.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::ssh {

using remote::HostList;
using remote::HostSource;
using remote::HostSpec;

/// Meant for designated initialisers: `{.hosts = {"host1", "host2"}}`.
struct SshSetup {
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
  remote::RemoteOptions remote = {.timeouts = {.connect = 3600}};  ///< the time to connect includes that to ship
};

namespace detail {
/// What the environment says of hosts, where nothing else does.
SshSetup with_environment(SshSetup setup);
}  // namespace detail

/// An Executor for the hosts of a list, over ssh: see remote::ListedExecutor.
class SshExecutor : public remote::ListedExecutor {
 public:
  explicit SshExecutor(SshSetup setup);

 private:
  explicit SshExecutor(const std::shared_ptr<const SshSetup>& setup,
                       std::shared_ptr<remote::Notices> notices = std::make_shared<remote::Notices>());
};

static_assert(Executor<SshExecutor>);

}  // namespace hypertune::inline v0::ssh

namespace hypertune::inline v0 {
using ssh::SshExecutor;
using ssh::SshSetup;

/// `ht::over_ssh({.hosts = {"host1", "host2"}})`: trials as processes on these hosts.
inline SshExecutor over_ssh(SshSetup setup = {}) { return SshExecutor(std::move(setup)); }
}  // namespace hypertune::inline v0
