// MachineLink: a connection to one machine of a cluster of any provider; and the functions that depend on the provider.
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

/// Makes the provider that the file names, with the cluster's own folder. Error of kind `input` if there is no such
/// provider, of kind `usage` for kubernetes if this was built without it.
AnyProvider provider_of(const ClusterConfig& config);
/// The MachineAccess for the provider's machines.
AnyAccess access_of(const ClusterConfig& config);
/// A Cluster with the provider and the access above.
std::unique_ptr<Cluster> open_cluster(ClusterConfig config, ClusterHooks hooks = {});

/// A connection to one machine; it is closed when the last copy is destroyed.
struct MachineLink {
  remote::HostShell shell;
  /// Forwards a port: connections to port `local` on loopback here go to port `remote` on the machine's loopback.
  std::function<void(std::uint16_t local, std::uint16_t remote)> forward;
};

/// `stop` interrupts connecting, for pods only. Errors are those of ssh or of the API server. `state`: the cluster's
/// folder.
MachineLink connect_machine(const ClusterConfig& config, const Machine& machine, const std::filesystem::path& state,
                            Seconds deadline = 30, const std::stop_token& stop = {});

/// What an error means for the connection to a machine.
enum class LinkProblem : std::uint8_t {
  permanent,    ///< a retry would fail as well
  transient,    ///< a retry may succeed
  unreachable,  ///< a retry may succeed; nothing has answered yet
};
LinkProblem link_problem(const std::exception& error);
/// As above, for a machine that was just made, whose user account may not exist yet.
LinkProblem fresh_link_problem(const std::exception& error);

/// An interactive session on a machine: a command, a shell or only port forwarding.
struct Session {
  std::string command = {};  ///< run by a login shell; empty: an interactive login shell
  bool only_ports = false;   ///< forward ports only, until `stop`
  bool terminal = false;     ///< allocate a terminal
  struct Port {
    std::uint16_t local = 0, remote = 0;
  };
  std::vector<Port> ports = {};  ///< forwarded during the session, from loopback to loopback
};
/// Runs the session with this process's streams. `run` starts a program (ssh) at this terminal and returns its exit
/// code. Returns the command's exit code.
int run_session(const ClusterConfig& config, const Machine& machine, const Session& what,
                const std::function<int(const std::vector<std::string>&)>& run, const std::stop_token& stop);

}  // namespace hypertune::inline v0::cluster
