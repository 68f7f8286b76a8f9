// How the machines of a cluster are reached over ssh: the user's ssh, with the additions of CLUSTER.yaml.
#pragma once

#include <hypertune/cluster/config.hpp>
#include <hypertune/cluster/machine.hpp>
#include <hypertune/ssh/options.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace hypertune::inline v0::cluster {

namespace detail {
/// The name of a machine in known_hosts and in the head's ssh_config.
inline std::string host_alias(const ClusterConfig& config, const Machine& machine) {
  return "hypertune-" + config.name + "-" + machine.id;
}
}  // namespace detail

/// The ssh options for one machine. `state`: the cluster's folder, which holds the host keys of machines that were made
/// for it. Host keys are always checked: for the `local` provider against the user's known_hosts; for a new machine
/// against the key that its provider reports, or else (host_keys: accept-new) the first key it presents.
ssh::SshOptions ssh_options(const ClusterConfig& config, const Machine& machine, const std::filesystem::path& state);

/// The `ssh` command for an interactive session: `extra` options, then the machine, then `command` if it is not empty.
std::vector<std::string> ssh_command(const ClusterConfig& config, const Machine& machine,
                                     const std::filesystem::path& state, const std::vector<std::string>& extra = {},
                                     const std::vector<std::string>& command = {});

/// The host keys of the machine that this computer knows ("ssh-ed25519 AAAA…"), to pass on to another machine.
std::vector<std::string> known_host_keys(const ClusterConfig& config, const Machine& machine,
                                         const std::filesystem::path& state);

/// Forgets the host key of a machine that no longer exists.
void forget_host_key(const ClusterConfig& config, const Machine& machine, const std::filesystem::path& state);

}  // namespace hypertune::inline v0::cluster
