// on_cluster(): trials on the machines of a CLUSTER.yaml, which are launched and terminated as the queue needs.
#pragma once

#include <hypertune/cluster/config.hpp>
#include <hypertune/remote/elastic.hpp>
#include <hypertune/ssh/executor.hpp>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>

namespace hypertune::inline v0::cluster {

/// Meant for designated initialisers: `{.file = "CLUSTER.yaml", .remote = runtime.setup()}`.
struct ClusterSetup {
  std::filesystem::path file = {};  ///< the CLUSTER.yaml, read when the experiment begins
  ClusterOverrides overrides = {};  ///< replace values of the file
  ssh::SshSetup remote = {};        ///< how trials run on the machines; its hosts and ssh.config are set by the cluster
  bool grow = true;                 ///< launch and terminate machines for the queue; false: use only those that are up
  std::function<void()> tick = {};  ///< called about once a second, on a thread of the executor
  /// Gets the lines for the user while no experiment takes them; by default they go to standard error. May be called
  /// from any thread.
  std::function<void(const std::string&)> say = {};
};

/// Machines are launched while trials wait, up to max_workers, cheapest first, spot before on-demand. They are
/// terminated after being idle for idle_timeout_minutes, and at the end of the run, however it ends, except for the
/// head and min_workers of a cluster that `hypertune up` has started. After a SIGKILL they run on until the experiment
/// is resumed, or until `hypertune down`. A trial that fits on no type is an error of kind `resources` before any
/// machine is launched. The costs are in `cost.json` in the experiment's folder; `hypertune results` shows them.
/// Without `grow`, the executor uses the machines that `hypertune up` has started and does not terminate them, so
/// others may use them as well. hosts() waits for the first machine; Ctrl-C interrupts the wait (InterruptedEarly) and
/// terminates all machines. Copies share one executor.
class ClusterExecutor : public remote::ElasticExecutor {
 public:
  explicit ClusterExecutor(ClusterSetup setup);
};

/// Ctrl-C has interrupted an experiment before a machine was up. Of kind `experiment`.
class InterruptedEarly : public Error {
 public:
  InterruptedEarly() : Error(Errc::experiment, "interrupted before a machine was up; nothing is left of it") {}
};

static_assert(Executor<ClusterExecutor>);

}  // namespace hypertune::inline v0::cluster

namespace hypertune::inline v0 {
using cluster::ClusterExecutor;
using cluster::ClusterSetup;

/// `ht::on_cluster("CLUSTER.yaml", runtime.setup())`: runs trials as processes on the machines of a cluster.
inline ClusterExecutor on_cluster(std::filesystem::path file, SshSetup remote = {}) {
  ClusterSetup setup;
  setup.file = std::move(file);
  setup.remote = std::move(remote);
  return ClusterExecutor(std::move(setup));
}
}  // namespace hypertune::inline v0
