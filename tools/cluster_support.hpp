// Shared by the commands on clusters: reading the file with the changes of the command line, Ctrl-C, and programs in
// the foreground.
#pragma once

#include <hypertune/cluster/cluster.hpp>
#include <hypertune/cluster/job.hpp>
#include <hypertune/cluster/machine_link.hpp>

#include <stop_token>
#include <string>
#include <vector>

namespace hypertune::inline v0::command {

struct ClusterArguments {
  std::string file, name;
  int min_workers = -1, max_workers = -1;
  bool yes = false, no_restart = false, restart_only = false;
  bool workers_only = false, keep_min_workers = false;
  bool start = false, stop = false, detach = false, all_nodes = false, follow = false;
  bool slurm = false;       // `file` is a sweep, and `rest` has options of sbatch
  bool kubernetes = false;  // `file` is a sweep
  std::string service_account = "hypertune-driver", volume, storage_class, storage = "10GiB", ttl, deadline;
  bool with_volume = false;
  std::vector<std::string> ports;
  std::string source, target, program, output, legacy_args, samples;
  std::vector<std::string> rest, sync, set;
  int worker = -1;
};

/// Of a sweep that is submitted: its settings, key=value.
std::vector<std::string> settings_of(const ClusterArguments& arguments);

/// Reads the file, and prints its warnings.
cluster::ClusterConfig read_cluster(const ClusterArguments& arguments);

/// How often Ctrl-C (or SIGTERM, SIGHUP) was received since the first call, which takes over these signals.
int interruptions();
bool interrupted();  ///< whether there was any
/// Stopped as soon as there were more than `heard`.
std::stop_token interrupted_after(int heard);
cluster::ClusterHooks hooks();

/// Asks the user. Returns true without asking if there is no terminal, or with `yes`.
bool confirmed(const std::string& question, bool yes);

/// Runs a program on this terminal until it ends; returns its exit code.
int run_foreground(const std::vector<std::string>& arguments);

/// "LOCAL:REMOTE" or "PORT", from loopback to the machine's loopback. Error of kind `usage`.
std::vector<cluster::Session::Port> ports_of(const std::vector<std::string>& ports);

/// Retries to connect for `patience` seconds: a temporary network failure must not end a run of hours.
cluster::MachineLink patient_link(const cluster::ClusterConfig& config, const cluster::Machine& machine,
                                  double patience);

/// Runs `up` and prints its report. Returns whether the head and everything else is ready.
bool bring_up(cluster::Cluster& cluster, const ClusterArguments& arguments);

/// The jobs on a machine of the cluster that are running, or whose results were not fetched; empty if it is not a
/// running head. Throws if the head cannot be reached.
std::vector<cluster::JobStatus> unfetched_jobs(const cluster::ClusterConfig& config, const cluster::Machine& machine);

int submit(const ClusterArguments& arguments);
int logs(const ClusterArguments& arguments);

}  // namespace hypertune::inline v0::command
