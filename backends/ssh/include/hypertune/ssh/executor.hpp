// SshExecutor: trials on the hosts of a list, over the user's own ssh; includes connections, shipping and agents.
#pragma once

#include <hypertune/execute/executor.hpp>
#include <hypertune/remote/elastic.hpp>
#include <hypertune/remote/host_source.hpp>
#include <hypertune/remote/notices.hpp>
#include <hypertune/ssh/options.hpp>
#include <hypertune/ssh/shipping.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::ssh {

using remote::HostList;
using remote::HostOptions;
using remote::HostSource;

/// Meant for designated initialisers: `{.hosts = {"host1", "host2"}}`.
struct SshSetup {
  /// Default: the hosts of HostSource::environment(). They are reached with the ssh_config that HYPERTUNE_SSH_CONFIG
  /// names, unless `ssh.config` is set, and HYPERTUNE_NOTICE_URL announces their end, unless `remote` says otherwise.
  HostSource hosts = {};
  SshOptions ssh = {};
  /// The program that runs on the hosts. It must become an agent when called with the arguments below and then
  /// `--hypertune-agent` (a Runtime does that). Empty: this program itself.
  std::filesystem::path program = {};
  std::vector<std::string> arguments = {};
  std::vector<FileMount> mounts = {};  ///< relative targets are below the working folder
  /// Local paths of the programs among the mounts; their architecture and libraries are checked before anything runs.
  std::vector<std::filesystem::path> programs = {};
  /// What must exist on a host before a trial runs: names found in PATH, or paths relative to the working folder.
  std::vector<std::string> needs = {};
  std::string directory = {};  ///< working folder of agents and commands; empty: the home folder
  HostOptions limits = {};     ///< defaults for what the list does not say about a host; its name is ignored
  ShipOptions ship = {};
  remote::RemoteOptions remote = {.timeouts = {.connect = 3600}};  ///< the time to connect includes shipping
};

namespace detail {
/// Fills in the hosts, the ssh_config and the notice URL from the environment, where `setup` does not give them.
SshSetup with_environment(SshSetup setup);
}  // namespace detail

/// The hosts of `setup`, and how they are reached. `notices`: gets lines about them.
remote::ListedHosts ssh_hosts(SshSetup setup, std::shared_ptr<remote::Notices> notices);

/// An Executor for the hosts of a list, over ssh. Nothing is connected before hosts() or start() is called; all
/// connections end with the executor.
class SshExecutor : public remote::ElasticExecutor {
 public:
  explicit SshExecutor(SshSetup setup);
};

static_assert(Executor<SshExecutor>);

}  // namespace hypertune::inline v0::ssh

namespace hypertune::inline v0 {
using ssh::SshExecutor;
using ssh::SshSetup;

/// `ht::over_ssh({.hosts = {"host1", "host2"}})`: runs trials as processes on these hosts.
inline SshExecutor over_ssh(SshSetup setup = {}) { return SshExecutor(std::move(setup)); }
}  // namespace hypertune::inline v0
