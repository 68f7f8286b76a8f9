// Machines of a cluster that are Kubernetes pods.
#pragma once

#include <hypertune/cluster/access.hpp>
#include <hypertune/cluster/config.hpp>
#include <hypertune/cluster/machine_link.hpp>
#include <hypertune/cluster/provider.hpp>
#include <hypertune/k8s/machine_pods.hpp>

#include <exception>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace hypertune::inline v0::cluster {

/// The cluster's pods. Error of kind `usage` or `input` if there are no credentials.
k8s::MachinePods pods_of(const ClusterConfig& config);

/// Machines are identified by pod names; a token makes one pod, with the tags as labels. Ended pods are not listed.
class PodProvider {
 public:
  explicit PodProvider(const ClusterConfig& config);
  std::vector<Machine> list();
  Machine create(const LaunchRequest& request);
  void terminate(const std::vector<std::string>& ids);
  void stop(const std::vector<std::string>& ids);
  void start(const std::vector<std::string>& ids);
  std::optional<Resources> resources_of(const NodeType& type) { return type.resources; }
  /// The API server lists a new pod at once, but a request of a killed driver may still be in transit.
  double listing_delay() const { return 2; }
  std::string explain(const std::string& id);
  void clear();

 private:
  ClusterConfig config_;
  k8s::MachinePods pods_;
};

/// Runs scripts in pods through the API server.
class PodAccess {
 public:
  MachineReport set_up(Cluster& cluster, const Machine& machine, const UpOptions& options);
  /// Gives the head the cluster's file: it reaches the other pods with the rights of its service account.
  void introduce(Cluster& cluster, const std::vector<MachineReport>& reports);
  void clean(Cluster&, const Machine&) {}
  void forget(Cluster&, const Machine&) {}
  void offer(Cluster&, const std::vector<OfferedMachine>&) {}
};

MachineLink connect_pod(const ClusterConfig& config, const Machine& machine, const std::stop_token& stop);
/// nullopt if it is not an error of an API server.
std::optional<LinkProblem> pod_problem(const std::exception& error);
int run_pod_session(const ClusterConfig& config, const Machine& machine, const Session& what,
                    const std::stop_token& stop);

}  // namespace hypertune::inline v0::cluster
