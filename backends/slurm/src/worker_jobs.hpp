// WorkerJobs: the jobs of one experiment's workers, from their submission until Slurm has none of them any more.
#pragma once

#include "job_guard.hpp"
#include "queue.hpp"

#include <hypertune/trial/trial.hpp>

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

namespace hypertune::inline v0::slurm {

/// A name for the jobs of the experiment in `directory`, which stays the same when it is resumed, on any machine, and
/// differs from that of any other folder, also from that of a copy: "digits-1f6a0c3e".
std::string job_stem(const std::string& experiment, const std::filesystem::path& directory);

/// What the jobs of one experiment have in common.
struct JobsPlan {
  std::string stem;                 ///< their names are this, a dot and a number
  std::filesystem::path directory;  ///< the experiment's; whoever holds its lock may submit and end its jobs
  Seconds orphan = 300;             ///< see job_script()
  std::map<std::string, std::optional<std::string>> environment = {};
  Queue queue = {};
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

/// A job that was submitted.
struct WorkerJob {
  enum class State : std::uint8_t { waiting, running, unwanted, ended };
  std::string worker, name;
  std::uint64_t id = 0;
  Seconds submitted = 0;  ///< by the steady clock
  State state = State::waiting;
};

/// No job is submitted before those that an earlier driver of the experiment left are cancelled. Only the driver that
/// holds the experiment's lock does either. Thread-safe.
class WorkerJobs {
 public:
  explicit WorkerJobs(JobsPlan plan) : plan_(std::move(plan)) {}

  /// Submits a job (`sbatch`: the command) and waits until it runs; returns its number. It lasts until end(). Throws
  /// DialError: if Slurm refuses it, it ends, it is released, or `stop` is requested. There is then no job.
  std::uint64_t start(const std::string& worker, const std::string& name, const std::vector<std::string>& sbatch,
                      const std::stop_token& stop);
  /// Cancels the job.
  void end(std::uint64_t id);
  /// Nobody waits for this worker's job any more: start() throws. Does not block.
  void release(const std::string& worker);

  /// The jobs that start() waits for.
  std::vector<WorkerJob> waiting() const;
  /// The job runs, or has vanished from Slurm's queue.
  void began(std::uint64_t id) { change(id, WorkerJob::State::running); }
  void vanished(std::uint64_t id) { change(id, WorkerJob::State::ended); }

  /// Tries again to cancel what could not be cancelled, but not too often.
  void clean_up();
  /// The same at the end of the run, also for what an earlier driver left. Returns what to tell the user if jobs may be
  /// left; empty: there is none.
  std::string finish();

  const Queue& queue() const { return plan_.queue; }

 private:
  void change(std::uint64_t id, WorkerJob::State state);
  bool cancel_ended(Trouble& trouble);
  bool drives() const;
  void await_lock(const std::stop_token& stop) const;
  bool end_earlier(const std::stop_token& stop, Trouble& trouble);
  bool cancel_all(const std::stop_token& stop, Trouble& trouble, std::vector<std::uint64_t>& ids);
  std::uint64_t submit(const std::string& name, const std::vector<std::string>& sbatch, const std::stop_token& stop);

  JobsPlan plan_;
  JobGuard guard_;
  std::mutex earlier_mutex_;  // held while jobs of an earlier driver are looked for
  bool earlier_ended_ = false;
  std::mutex cancel_mutex_;  // held while scancel runs
  Seconds no_answer_at_ = -1e9;
  mutable std::mutex mutex_;  // of all below
  std::condition_variable_any changed_;
  std::map<std::uint64_t, std::shared_ptr<WorkerJob>> waiting_;
  std::set<std::uint64_t> to_cancel_;
  std::set<std::string> unclear_;  // names of jobs of which it is not known whether Slurm has accepted them
};

}  // namespace hypertune::inline v0::slurm
