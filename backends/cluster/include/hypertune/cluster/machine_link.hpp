// MachineLink: a connection to one machine of a cluster, whatever the provider; and what goes with a provider.
#pragma once

#include <hypertune/cluster/access.hpp>
#include <hypertune/cluster/cluster.hpp>
#include <hypertune/cluster/config.hpp>
#include <hypertune/cluster/machine.hpp>
#include <hypertune/cluster/provider.hpp>
#include <hypertune/remote/host_shell.hpp>
#include <hypertune/trial/trial.hpp>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace hypertune::inline v0::cluster {

/// The provider that the file names, in the cluster's own folder. Error of kind `input` for one that there is not, of
/// kind `usage` for kubernetes where this was built without it.
AnyProvider provider_of(const ClusterConfig& config);
/// How its machines are logged in to.
AnyAccess access_of(const ClusterConfig& config);
/// Both, driven: see Cluster.
std::unique_ptr<Cluster> open_cluster(ClusterConfig config, ClusterHooks hooks = {});

/// A connection to one machine, for as long as it (or a copy) lives.
struct MachineLink {
  remote::HostShell shell;
  /// Who connects to the first port on loopback here is connected to the second one on the machine's loopback.
  std::function<void(std::uint16_t local, std::uint16_t remote)> forward;
};

/// `stop` ends the connecting, of pods. Errors are those of ssh, or of the API
/// server. `state`: the cluster's folder.
MachineLink connect_machine(const ClusterConfig& config, const Machine& machine, const std::filesystem::path& state,
                            Seconds deadline = 30, const std::stop_token& stop = {});

/// What an error says of a machine that was connected to, or used over a link.
enum class LinkTrouble : std::uint8_t {
  lasting,  ///< another attempt would fail as well
  passing,  ///< it may succeed
  silent,   ///< … and nothing has answered
};
LinkTrouble link_trouble(const std::exception& error);
/// The same of a machine that was made a moment ago, and whose account may not be there yet.
LinkTrouble fresh_link_trouble(const std::exception& error);

/// What a person does at a machine.
struct Attendance {
  std::string command = {};  ///< of a login shell; empty: that shell itself
  bool only_ports = false;   ///< no command at all: until `stop`
  bool terminal = false;     ///< it has a terminal
  struct Port {
    std::uint16_t local = 0, remote = 0;
  };
  std::vector<Port> ports = {};  ///< forwarded meanwhile, from loopback to loopback
};
/// Runs it with this process's streams. `run` starts a program at this terminal and returns its exit code (of ssh,
/// which a person meets as it is). Returns the command's exit code.
int attend(const ClusterConfig& config, const Machine& machine, const Attendance& what,
           const std::function<int(const std::vector<std::string>&)>& run, const std::stop_token& stop);

}  // namespace hypertune::inline v0::cluster
