// ClusterScaler: carries the autoscaler's decisions out, and offers the machines that are up to an executor.
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
  Seconds poll = 5;                                  ///< between looks at what the provider has
  std::function<void(const std::string&)> log = {};  ///< each decision and its reason, a line
  /// How a machine is made ready; by default Cluster::set_up().
  std::function<MachineReport(const Machine&)> set_up = {};
};

/// Grows and shrinks a cluster with a queue of trials. Its machines are a HostSource: one appears there when it is set
/// up, and leaves it before it is ended, so that no trial is placed on a machine that is about to go; it is ended only
/// when the demand that was asked for after that shows nothing on it. Machines that are lost leave too. What fails is
/// said in the log and tried again by the autoscaler's rules.
///
/// Threads: one of its own that decides, and some that launch. `demand` is called on the first. The cluster must live
/// longer. stop(), which the destructor calls, waits for launches that are under way, and ends no machine.
class ClusterScaler {
 public:
  ClusterScaler(Cluster& cluster, std::function<HostDemand()> demand, ScalerOptions options = {});
  ~ClusterScaler();
  ClusterScaler(const ClusterScaler&) = delete;
  ClusterScaler& operator=(const ClusterScaler&) = delete;

  /// The machines that take trials now: those that were offered to the cluster's MachineAccess.
  remote::HostSource host_source(Seconds interval = 1) const;
  remote::HostList hosts() const;
  /// Error of kind `resources` at once for a trial that fits on no machine of the cluster's file.
  void require_possible(const Resources& needs) const;
  /// The shapes that were asked for and can never be placed.
  std::vector<Resources> impossible() const;
  /// Why it is no use to wait for the first machine: none has come up, several launches have failed one after the other
  /// for other reasons than that there was none to be had, and no other is under way. The last reason.
  std::optional<std::string> hopeless() const;
  CostReport cost() const;
  /// Decides now rather than at the next tick: the queue has changed.
  void wake();
  void stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace hypertune::inline v0::cluster
