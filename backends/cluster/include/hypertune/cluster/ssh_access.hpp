// SshAccess: machines of a cluster over the user's own ssh.
#pragma once

#include <hypertune/cluster/access.hpp>
#include <hypertune/cluster/cluster.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace hypertune::inline v0::cluster {

/// Connects, copies files, runs the file's commands; the head logs in to the workers by a key that was made on it.
class SshAccess {
 public:
  MachineReport set_up(Cluster& cluster, const Machine& machine, const UpOptions& options);
  void introduce(Cluster& cluster, const std::vector<MachineReport>& reports);
  void clean(Cluster& cluster, const Machine& machine);
  void forget(Cluster& cluster, const Machine& machine);
  /// Writes ssh_config() anew where it has changed.
  void offer(Cluster& cluster, const std::vector<OfferedMachine>& machines);

  /// An ssh_config with each machine that is offered, by its name: address, user, key and host key as CLUSTER.yaml has
  /// them, then what the user's own says.
  static std::filesystem::path ssh_config(const Cluster& cluster) { return cluster.state() / "ssh_config"; }

  /// What offer() writes.
  static std::string ssh_config_text(const ClusterConfig& config, const std::filesystem::path& state,
                                     const std::vector<OfferedMachine>& machines);

 private:
  std::string written_;  // of the one thread that offers
};

static_assert(MachineAccess<SshAccess>);

}  // namespace hypertune::inline v0::cluster
