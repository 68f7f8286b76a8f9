// How the machines of a cluster are reached over ssh: the user's ssh, with what CLUSTER.yaml adds.
#pragma once

#include <hypertune/cluster/config.hpp>
#include <hypertune/cluster/machine.hpp>
#include <hypertune/ssh/options.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace hypertune::inline v0::cluster {

namespace detail {
/// What a machine is called in known_hosts and in the head's ssh_config.
inline std::string host_alias(const ClusterConfig& config, const Machine& machine) {
  return "hypertune-" + config.name + "-" + machine.id;
}
}  // namespace detail

/// The options for one machine. `state`: the cluster's folder, which holds the host keys of machines that were made for
/// it. Host keys are always checked: a machine of the `local` provider by the user's known_hosts; a new machine by the
/// key that its provider tells, or else (host_keys: accept-new) by the first key it shows.
ssh::SshOptions ssh_options(const ClusterConfig& config, const Machine& machine, const std::filesystem::path& state);

/// The `ssh` command for a person at a terminal: `extra` options, then the machine, then `command` if there is one.
std::vector<std::string> ssh_command(const ClusterConfig& config, const Machine& machine,
                                     const std::filesystem::path& state, const std::vector<std::string>& extra = {},
                                     const std::vector<std::string>& command = {});

/// The host keys by which this computer knows the machine ("ssh-ed25519 AAAA…"), for telling another one.
std::vector<std::string> known_host_keys(const ClusterConfig& config, const Machine& machine,
                                         const std::filesystem::path& state);

/// Forgets the host key of a machine that is gone.
void forget_host_key(const ClusterConfig& config, const Machine& machine, const std::filesystem::path& state);

}  // namespace hypertune::inline v0::cluster
