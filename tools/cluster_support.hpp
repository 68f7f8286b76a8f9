// What the commands on clusters share: the file with the command line's changes, Ctrl-C, and programs in the
// foreground.
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
  bool slurm = false;       // `file` is a sweep, and `rest` options of sbatch
  bool kubernetes = false;  // `file` is a sweep
  std::string service_account = "hypertune-driver", volume, storage_class, storage = "10GiB", ttl, deadline;
  bool with_volume = false;
  std::vector<std::string> ports;
  std::string source, target, program, output, legacy_args, samples;
  std::vector<std::string> rest, sync, set;
  int worker = -1;
};

/// Reads the file, and says its warnings.
cluster::ClusterConfig read_cluster(const ClusterArguments& arguments);

/// How often Ctrl-C (or SIGTERM, SIGHUP) was given since the first call, which takes these signals over.
int interruptions();
bool interrupted();  ///< whether it was given at all
/// Stopped as soon as it was given more than `heard` times.
std::stop_token interrupted_after(int heard);
cluster::ClusterHooks hooks();

/// Asks a person; yes without asking where nobody is at the terminal, or `yes`.
bool confirmed(const std::string& question, bool yes);

/// Runs a program at this terminal until it ends; its exit code.
int run_foreground(const std::vector<std::string>& arguments);

/// "LOCAL:REMOTE" or "PORT", from loopback to the machine's loopback. Error of kind `usage`.
std::vector<cluster::Attendance::Port> ports_of(const std::vector<std::string>& ports);

/// Connects again and again, for so many seconds: a network that comes and goes must not end a run of hours.
cluster::MachineLink patient_link(const cluster::ClusterConfig& config, const cluster::Machine& machine,
                                  double patience);

/// `up` and its report; returns whether the head is there and everything else too.
bool bring_up(cluster::Cluster& cluster, const ClusterArguments& arguments);

/// The jobs on a machine of the cluster that run, or whose results nobody has fetched: none where it is no head that is
/// up. Errors of the way to the head.
std::vector<cluster::JobStatus> unfetched_jobs(const cluster::ClusterConfig& config, const cluster::Machine& machine);

int submit(const ClusterArguments& arguments);
int logs(const ClusterArguments& arguments);

}  // namespace hypertune::inline v0::command
