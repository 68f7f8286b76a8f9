// on_cluster(): trials on the machines of a CLUSTER.yaml, which come and go with the queue.
#pragma once

#include <hypertune/cluster/config.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/ssh/executor.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::cluster {

/// Meant for designated initialisers: `{.file = "CLUSTER.yaml", .remote = runtime.setup()}`.
struct ClusterSetup {
  std::filesystem::path file = {};  ///< the CLUSTER.yaml, read when the experiment begins
  ClusterOverrides overrides = {};  ///< of what it says
  ssh::SshSetup remote = {};        ///< how trials get to machines; its hosts and ssh.config are the cluster's
  bool grow = true;                 ///< whether machines are launched and ended for the queue; false: those that are up
  std::function<void()> tick = {};  ///< called about once a second, on a thread of the executor's
  /// Lines for the user while no experiment takes them; by default they go to standard error. Any thread.
  std::function<void(const std::string&)> say = {};
};

/// Machines are launched as trials wait, up to max_workers, cheapest first, spot before on-demand; end when they were
/// idle for idle_timeout_minutes; and end with the run, however it ends, but for the head and min_workers of a cluster
/// that `hypertune up` has brought up. After a SIGKILL they go on until the experiment is resumed, or `hypertune down`.
/// A trial that fits on no type is an error of kind `resources` before any machine is asked for. What it has cost is
/// `cost.json` in the experiment's folder, as `hypertune results` shows it. Without `grow` the machines are those that
/// `hypertune up` has brought up, and stay: others may use them as well. Copies are the same executor.
class ClusterExecutor {
 public:
  explicit ClusterExecutor(ClusterSetup setup);

  /// Waits for the first machine; Ctrl-C ends that (Error of kind `experiment`), with all machines.
  std::vector<Host> hosts() const;
  Seconds now() const;
  void start(ExecutorStart start);
  void perform(Command command);
  void wait(Seconds deadline);
  void notify();
  void shutdown();
  std::string name() const { return "ssh"; }
  static constexpr bool runs_gangs = true;

  void prepare(const Workload& workload);
  void trial_ended(TrialId trial);
  void teardown();

  /// Whether Ctrl-C ended the last run before a machine was up.
  bool interrupted_early() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

static_assert(Executor<ClusterExecutor>);

}  // namespace hypertune::inline v0::cluster

namespace hypertune::inline v0 {
using cluster::ClusterExecutor;
using cluster::ClusterSetup;

/// `ht::on_cluster("CLUSTER.yaml", runtime.setup())`: trials as processes on machines that come and go with the queue.
inline ClusterExecutor on_cluster(std::filesystem::path file, SshSetup remote = {}) {
  ClusterSetup setup;
  setup.file = std::move(file);
  setup.remote = std::move(remote);
  return ClusterExecutor(std::move(setup));
}
}  // namespace hypertune::inline v0
