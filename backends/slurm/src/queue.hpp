// What squeue says of workers that wait, and what srun says when it fails.
#pragma once

#include <hypertune/remote/dialer.hpp>

#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::slurm {

/// A job as squeue knows it.
struct QueuedJob {
  std::uint64_t id = 0;
  std::string state;   ///< PENDING, CONFIGURING, RUNNING, …
  std::string reason;  ///< Resources, Priority, QOSMaxJobsPerUserLimit, …; "None"
  friend bool operator==(const QueuedJob&, const QueuedJob&) = default;
};

/// The newest job of each name. What is no line of ours is passed over: others may print into it, and nothing of it is
/// trusted.
std::map<std::string, QueuedJob> read_queue(std::string_view printed);

/// Asks for jobs of these names. Nullopt: Slurm does not answer for now. Bounded.
std::optional<std::map<std::string, QueuedJob>> ask_queue(const std::vector<std::string>& names,
                                                          const std::stop_token& stop, std::string& trouble);

/// Ends all jobs of these names. False: Slurm does not answer. Bounded.
bool cancel_jobs(const std::vector<std::string>& names);

/// Why a worker is not there yet, as a sentence goes on after its name: "waits in Slurm's queue (Resources: …)".
std::string why_waiting(const QueuedJob& job);

/// Why it waits, in short, as one of several does: "Resources", "Priority"; empty: Slurm does not say.
std::string reason_word(const QueuedJob& job);

/// What is wrong with a job that pends and can never start as it is, as a sentence: "no node of the partition has what
/// it asks for (BadConstraints)". Empty: it may start, be it that a limit must pass or somebody must let it go.
std::string why_never(const QueuedJob& job);

/// What it means for further attempts that srun ended before the agent spoke, by what came on its standard error.
remote::FailureClass classify_srun(std::string_view said);

/// The line of it that tells people most.
std::string reason_of_srun(std::string_view said);

}  // namespace hypertune::inline v0::slurm
