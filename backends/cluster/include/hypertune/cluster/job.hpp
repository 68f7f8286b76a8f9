// Jobs: programs that run on a cluster's head, whether or not anybody is connected.
#pragma once

#include <hypertune/cluster/config.hpp>
#include <hypertune/remote/host_shell.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::cluster {

struct JobSpec {
  std::filesystem::path program;
  std::vector<std::string> arguments;
  std::vector<std::filesystem::path> files;  ///< copied into its working folder
  std::string name = {};                     ///< for people; empty: the program's
};

enum class JobState : std::uint8_t {
  none,  ///< never started, or its results are fetched
  running,
  ended,  ///< with an exit code; its results wait to be fetched
  died,   ///< without one: the machine was restarted, or everything was killed
};

struct JobStatus {
  std::string id;
  JobState state = JobState::none;
  int code = 0;           ///< of `ended`
  std::string name = {};  ///< for people; of all_jobs()
};

namespace detail {
/// A line of shell.
std::string job_environment(const ClusterConfig& config);
}  // namespace detail

/// What a program, its arguments and its files are called on the cluster: the same for the same, so that a submit that
/// is repeated finds its job. Error of kind `input` if the program cannot be read.
std::string job_id(const JobSpec& spec);

/// Starts the job, or finds it running or ended already. It runs in a folder of its own below the home folder; its
/// environment says how the machines of the cluster are reached: HYPERTUNE_CLUSTER (the name), HYPERTUNE_HOSTS (a file
/// of hosts, one a line), HYPERTUNE_SSH_CONFIG and, on EC2, HYPERTUNE_NOTICE_URL (where a spot machine learns of its
/// end); of pods HYPERTUNE_CLUSTER and HYPERTUNE_CLUSTER_FILE (the CLUSTER.yaml, for on_cluster()). A program for
/// another architecture or with missing libraries is an Error.
JobStatus start_job(const remote::HostShell& head, const ClusterConfig& config, const JobSpec& spec);
JobStatus job_status(const remote::HostShell& head, const ClusterConfig& config, const std::string& id);
/// The last one that was started comes first; those whose results were fetched are `none`.
std::vector<JobStatus> all_jobs(const remote::HostShell& head, const ClusterConfig& config);

/// Hands on what the job says from byte `offset` on, until it ends or the connection does; `follow` is false: what it
/// has said so far. Returns where it got to.
std::uint64_t follow_job(const remote::HostShell& head, const ClusterConfig& config, const std::string& id,
                         std::uint64_t offset, const std::function<void(std::string_view)>& output,
                         const std::stop_token& stop, bool follow = true);
/// Sends the whole job a signal ("INT", "TERM", "KILL").
void signal_job(const remote::HostShell& head, const ClusterConfig& config, const std::string& id,
                const std::string& signal);
/// Brings what the job wrote to `local`, with its log; the job counts as fetched from then on. Returns the files.
std::size_t fetch_job(const remote::HostShell& head, const ClusterConfig& config, const std::string& id,
                      const std::filesystem::path& local);

}  // namespace hypertune::inline v0::cluster
