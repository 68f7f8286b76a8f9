// What is done to a machine before it is used, over any shell.
#pragma once

#include <hypertune/cluster/access.hpp>
#include <hypertune/cluster/cluster.hpp>
#include <hypertune/remote/host_shell.hpp>

#include <string>

namespace hypertune::inline v0::cluster {

/// Where a cluster keeps its own files on a machine, below the home folder.
std::string remote_folder(const ClusterConfig& config);

/// MachineAccess::set_up(): waits until the machine can be reached, and does what the file says is to be done to it.
/// Nothing is done twice.
MachineReport set_up_machine(Cluster& cluster, const Machine& machine, const UpOptions& options);

/// A line of a host list: "NAME cpus=2 gpus=0", for programs that are submitted.
std::string host_line(const Cluster& cluster, const MachineReport& report, const std::string& name);

}  // namespace hypertune::inline v0::cluster
