// Setting a machine up before it is used, over any shell.
#pragma once

#include <hypertune/cluster/access.hpp>
#include <hypertune/cluster/cluster.hpp>
#include <hypertune/remote/host_shell.hpp>

#include <string>

namespace hypertune::inline v0::cluster {

/// The folder of a cluster's own files on a machine, relative to the home folder.
std::string remote_folder(const ClusterConfig& config);

/// MachineAccess::set_up(): waits until the machine can be reached, and sets it up as the file says. Steps that were
/// done before are not repeated.
MachineReport set_up_machine(Cluster& cluster, const Machine& machine, const UpOptions& options);

/// A line of the host list for submitted programs: "NAME cpus=2 gpus=0".
std::string host_line(const Cluster& cluster, const MachineReport& report, const std::string& name);

}  // namespace hypertune::inline v0::cluster
