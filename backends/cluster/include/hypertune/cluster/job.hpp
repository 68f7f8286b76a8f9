// Jobs: programs that run on a cluster's head and continue without a connection.
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

struct JobOptions {
  std::filesystem::path program;
  std::vector<std::string> arguments;
  std::vector<std::filesystem::path> files;  ///< copied into its working folder
  std::string name = {};                     ///< for display; empty: the name of the program
};

enum class JobState : std::uint8_t {
  none,  ///< never started, or its results have been fetched
  running,
  ended,  ///< ended with an exit code; its results have not been fetched yet
  died,   ///< ended without an exit code: the machine was restarted, or the whole job was killed
};

struct JobStatus {
  std::string id;
  JobState state = JobState::none;
  int code = 0;           ///< exit code, if `ended`
  std::string name = {};  ///< for display; set only by all_jobs()
};

namespace detail {
/// The shell command that exports the environment of a job; see start_job().
std::string job_environment(const ClusterConfig& config);
}  // namespace detail

/// The id of a job: a hash of its program, arguments and files, so that repeating a submit finds the same job. Error of
/// kind `input` if the program cannot be read.
std::string job_id(const JobOptions& spec);

/// Starts the job, or finds it running or ended already. It runs in its own folder below the home folder. Its
/// environment says how the machines of the cluster are reached: HYPERTUNE_CLUSTER (the name), HYPERTUNE_HOSTS (a file
/// of hosts, one per line), HYPERTUNE_SSH_CONFIG and, on EC2, HYPERTUNE_NOTICE_URL (announces the interruption of a
/// spot machine). For pods: HYPERTUNE_CLUSTER and HYPERTUNE_CLUSTER_FILE (the CLUSTER.yaml, for on_cluster()). Throws
/// an Error for a program of another architecture or with missing libraries.
JobStatus start_job(const remote::HostShell& head, const ClusterConfig& config, const JobOptions& spec);
JobStatus job_status(const remote::HostShell& head, const ClusterConfig& config, const std::string& id);
/// All jobs, the last started one first. Those whose results were fetched have the state `none`.
std::vector<JobStatus> all_jobs(const remote::HostShell& head, const ClusterConfig& config);

/// Passes the output of the job from byte `offset` on to `output`, until the job or the connection ends. If `follow` is
/// false, passes only the output so far. Returns the offset after the last byte passed.
std::uint64_t follow_job(const remote::HostShell& head, const ClusterConfig& config, const std::string& id,
                         std::uint64_t offset, const std::function<void(std::string_view)>& output,
                         const std::stop_token& stop, bool follow = true);
/// Sends a signal ("INT", "TERM", "KILL") to all processes of the job.
void signal_job(const remote::HostShell& head, const ClusterConfig& config, const std::string& id,
                const std::string& signal);
/// Copies the files that the job wrote, and its log, to `local`, and marks the job as fetched. Returns the number of
/// files.
std::size_t fetch_job(const remote::HostShell& head, const ClusterConfig& config, const std::string& id,
                      const std::filesystem::path& local);

}  // namespace hypertune::inline v0::cluster
