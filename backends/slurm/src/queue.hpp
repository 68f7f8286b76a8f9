// Reading the output of squeue for waiting workers, and the messages of a failed srun.
#pragma once

#include <hypertune/remote/dialer.hpp>

#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::slurm {

/// A job as squeue lists it.
struct QueuedJob {
  std::uint64_t id = 0;
  std::string state;   ///< PENDING, CONFIGURING, RUNNING, …
  std::string reason;  ///< Resources, Priority, QOSMaxJobsPerUserLimit, …; "None"
  friend bool operator==(const QueuedJob&, const QueuedJob&) = default;
};

/// Parses the output of squeue; returns the newest job of each name. Other lines are skipped: other programs may print
/// between them, and the content is not trusted.
std::map<std::string, QueuedJob> read_queue(std::string_view printed);

/// Asks squeue for jobs of these names. nullopt: Slurm does not answer now; `trouble` says why. Has a timeout.
std::optional<std::map<std::string, QueuedJob>> ask_queue(const std::vector<std::string>& names,
                                                          const std::stop_token& stop, std::string& trouble);

/// Cancels all jobs of these names. Returns false if Slurm does not answer. Has a timeout.
bool cancel_jobs(const std::vector<std::string>& names);

/// Why a worker has not started, as the rest of a sentence after its name: "waits in Slurm's queue (Resources: …)".
std::string why_waiting(const QueuedJob& job);

/// The short reason for waiting: "Resources", "Priority"; empty if Slurm gives none.
std::string reason_word(const QueuedJob& job);

/// Why a pending job can never start unchanged, as a clause: "no node of the partition has what it asks for
/// (BadConstraints)". Empty if it may start, even if first a limit has to change or somebody has to release it.
std::string why_never(const QueuedJob& job);

/// What it means for further attempts that srun ended before the agent's first message, by srun's standard error.
remote::FailureClass classify_srun(std::string_view said);

/// The most informative line of srun's standard error.
std::string reason_of_srun(std::string_view said);

}  // namespace hypertune::inline v0::slurm
