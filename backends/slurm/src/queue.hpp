// Slurm's queue: asking squeue for jobs, cancelling them, and why they wait.
#pragma once

#include <hypertune/slurm/detail/messages.hpp>

#include <cstdint>
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

struct ListedJob {
  std::string name;
  QueuedJob job;
};

/// Parses the output of squeue. Other lines are skipped: other programs may print between them, and the content is not
/// trusted.
std::vector<ListedJob> read_jobs(std::string_view printed);
/// The same; returns the newest job of each name.
std::map<std::string, QueuedJob> read_queue(std::string_view printed);

/// Whether scancel, which ended with this code and message, has left no job: those that are over already count as
/// cancelled.
bool cancelled(int code, std::string_view said);

/// Why a command of Slurm's has failed.
struct Trouble {
  std::string why;
  remote::FailureClass failure = remote::FailureClass::transient;
};

/// Whether this option of a job names the cluster, which other commands then need as well.
bool names_cluster(std::string_view arg);

/// The user's jobs in Slurm's queue. Each call has a timeout. If it fails, `trouble` says why.
class Queue {
 public:
  Queue() = default;
  /// `args`: the options of jobs, which may name another cluster.
  explicit Queue(const std::vector<std::string>& args);

  /// The newest job of each of these names.
  std::optional<std::map<std::string, QueuedJob>> newest(const std::vector<std::string>& names,
                                                         const std::stop_token& stop, Trouble& trouble) const;
  /// The numbers of all jobs that are named `stem`, a dot and a number.
  std::optional<std::vector<std::uint64_t>> jobs_of(const std::string& stem, const std::stop_token& stop,
                                                    Trouble& trouble) const;
  /// Cancels jobs. Those that are over already are no failure.
  bool cancel(const std::vector<std::uint64_t>& ids, Trouble& trouble) const;

 private:
  std::optional<std::string> ask(const std::vector<std::string>& which, const std::stop_token& stop,
                                 Trouble& trouble) const;
  std::vector<std::string> cluster_;
};

/// What a limit or another reason of Slurm's means in plain words; empty if that is not known.
std::string meaning_of_limit(std::string_view word);

/// Why a worker has not started, as the rest of a sentence after its name: "waits in Slurm's queue (Resources: …)".
std::string why_waiting(const QueuedJob& job);

/// The short reason for waiting: "Resources", "Priority"; empty if Slurm gives none.
std::string reason_word(const QueuedJob& job);

/// Why a pending job can never start unchanged, as a clause: "no node of the partition has what it asks for
/// (BadConstraints)". Empty if it may start, even if first a limit has to change or somebody has to release it.
std::string why_never(const QueuedJob& job);

}  // namespace hypertune::inline v0::slurm
