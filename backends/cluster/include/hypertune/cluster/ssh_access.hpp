// SshAccess: access to the machines of a cluster through the user's ssh.
#pragma once

#include <hypertune/cluster/access.hpp>
#include <hypertune/cluster/cluster.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace hypertune::inline v0::cluster {

/// Connects, copies files and runs the file's commands. The head logs in to the workers with a key generated on it.
class SshAccess {
 public:
  MachineReport set_up(Cluster& cluster, const Machine& machine, const UpOptions& options);
  void introduce(Cluster& cluster, const std::vector<MachineReport>& reports);
  void clean(Cluster& cluster, const Machine& machine);
  void forget(Cluster& cluster, const Machine& machine);
  /// Writes ssh_config() again if it has changed.
  void offer(Cluster& cluster, const std::vector<OfferedMachine>& machines);

  /// An ssh_config file with an entry for each offered machine, by its name: address, user, key and host key as in
  /// CLUSTER.yaml, followed by the user's own configuration.
  static std::filesystem::path ssh_config(const Cluster& cluster) { return cluster.state() / "ssh_config"; }

  /// The text that offer() writes.
  static std::string ssh_config_text(const ClusterConfig& config, const std::filesystem::path& state,
                                     const std::vector<OfferedMachine>& machines);

 private:
  std::string written_;  // used only by the thread that calls offer()
};

static_assert(MachineAccess<SshAccess>);

}  // namespace hypertune::inline v0::cluster
