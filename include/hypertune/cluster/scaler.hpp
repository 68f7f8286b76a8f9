// ClusterScaler: carries out the autoscaler's decisions, and offers the machines that are up to an executor.
#pragma once

#include <hypertune/cluster/autoscaler.hpp>
#include <hypertune/cluster/cluster.hpp>
#include <hypertune/cluster/cost.hpp>
#include <hypertune/remote/demand.hpp>
#include <hypertune/remote/host_source.hpp>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hypertune::inline v0::cluster {

using remote::HostDemand;

struct ScalerOptions {
  Seconds tick = 1;                                  ///< between decisions
  Seconds poll = 5;                                  ///< between calls of the provider's list
  std::function<void(const std::string&)> log = {};  ///< gets a line for each decision, with its reason
  /// Sets up a machine; by default Cluster::set_up().
  std::function<MachineReport(const Machine&)> set_up = {};
};

/// Grows and shrinks a cluster with a queue of trials. Its machines form a HostSource: a machine is added when it is
/// set up, and removed before it is terminated, so that no trial is placed on a machine that is about to end. It is
/// terminated only if the demand requested after that shows no trial on it. Lost machines are removed as well. Failures
/// are logged and retried by the autoscaler's rules.
///
/// Threads: one that decides, and several that launch. `demand` is called on the first. The cluster must outlive this
/// object. stop(), which the destructor calls, waits for launches in progress, and terminates no machine.
class ClusterScaler {
 public:
  ClusterScaler(Cluster& cluster, std::function<HostDemand()> demand, ScalerOptions options = {});
  ~ClusterScaler();
  ClusterScaler(const ClusterScaler&) = delete;
  ClusterScaler& operator=(const ClusterScaler&) = delete;

  /// The machines that take trials now; they were offered to the cluster's MachineAccess before.
  remote::HostSource host_source(Seconds interval = 1) const;
  remote::HostList hosts() const;
  /// Throws an error of kind `resources` if the trial fits on no machine of the cluster's file.
  void require_possible(const Resources& needs) const;
  /// The requested shapes that can never be placed.
  std::vector<Resources> impossible() const;
  /// Why waiting for the first machine is useless: no machine has come up, several launches in a row have failed for
  /// reasons other than capacity, and no other launch is in progress. Returns the last reason.
  std::optional<std::string> why_no_machine() const;
  CostReport cost() const;
  /// Decides now instead of at the next tick, because the queue has changed.
  void wake();
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hypertune::inline v0::cluster
