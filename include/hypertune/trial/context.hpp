// Context: what a running trial knows about its environment, and how it saves checkpoints.
#pragma once

#include <hypertune/space/search_space.hpp>
#include <hypertune/trial/checkpoint.hpp>
#include <hypertune/trial/detail/log_limit.hpp>
#include <hypertune/trial/group.hpp>
#include <hypertune/trial/resources.hpp>
#include <hypertune/trial/trial.hpp>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace hypertune::inline v0 {

/// One attempt of a trial, as the trial sees it. Made by the executor. Used by one thread at a time, except where
/// noted.
class Context {
 public:
  using Save = std::function<void(CheckpointWriter&)>;
  using Load = std::function<void(const Checkpoint&)>;

  /// Everything the executor knows when it starts an attempt.
  struct Start {
    TrialId trial = 0;
    Attempt attempt = 0;
    Point point;
    Params params;
    int next_step = 0;  ///< of the checkpoint in `restore`, or 0
    std::optional<Checkpoint> restore;
    Slot slot;
    std::filesystem::path directory;         ///< the trial's own folder
    std::uint64_t seed = 0;                  ///< derived from the experiment's seed and the trial's number
    std::filesystem::path checkpoints = {};  ///< folder of the store for checkpoints; empty: the experiment's
    std::uint64_t log_limit = default_log_limit;
    std::string log = "log";                 ///< the file in `directory` with the output of this worker
    std::shared_ptr<Group> group = nullptr;  ///< nullptr: there are no other workers
  };

  explicit Context(Start start);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  TrialId trial() const { return start_.trial; }
  Attempt attempt() const { return start_.attempt; }
  const Point& point() const { return start_.point; }
  const Params& params() const { return start_.params; }
  /// The first step to run: 0 at a fresh start, else the step after the restored checkpoint.
  int next_step() const { return start_.next_step; }
  /// The same for every attempt of a trial, different between trials.
  std::uint64_t seed() const { return start_.seed; }
  const Slot& slot() const { return start_.slot; }
  /// The workers that train this trial together: one, or as many as `Options::workers` asks for. Only the reports and
  /// checkpoints of rank 0 are those of the trial.
  Group& group() const { return *start_.group; }
  /// The trial's own folder, for anything it wants to keep; created on first use. Error of kind `io` if the
  /// experiment's folder is gone; std::filesystem::filesystem_error if it cannot be created.
  const std::filesystem::path& directory() const;
  /// The folder of the store in which this attempt's checkpoints are made; empty: that of the experiment.
  const std::filesystem::path& checkpoints() const { return start_.checkpoints; }
  /// Bytes of the trial's log that are kept; 0: all.
  std::uint64_t log_limit() const { return start_.log_limit; }
  /// The file of the trial's log; with several workers, of this worker's output. Errors as of directory().
  std::filesystem::path log() const;
  /// The checkpoint to continue from, if any.
  const std::optional<Checkpoint>& restore() const { return start_.restore; }

  /// Sets the functions that save and load. If there is a checkpoint to continue from, `load` is called before this
  /// returns. `save` is called between steps (never while the trial runs), when the policy or a preemption notice asks
  /// for it.
  void checkpoints(Save save, const Load& load);

  /// Tells the runner that a long step is still making progress, for the hang limit. May be called from any thread.
  void alive() { beats_.fetch_add(1, std::memory_order_relaxed); }

  /// Whether this attempt should end at once (Ctrl-C twice, a stop during a long step). A long step may check this now
  /// and then and return early; it does not have to. May be called from any thread.
  bool stop_requested() const { return stop_.load(std::memory_order_relaxed); }

  /// Requests a number of workers (0 or more), for a trial whose number of workers may change. It applies from the next
  /// report on, as far as there is room that no other trial waits for. Only the request of rank 0 counts. 0: as many as
  /// there is room for, as without a request. It holds until the next request, also in later attempts of the trial.
  /// A number outside of the bounds of `Options::workers` is replaced by the nearest bound, and a notice says so.
  /// `Options::resize` and `hypertune resize` take precedence. Error of kind `usage` for a negative number.
  void request_workers(int workers);
  int requested_workers() const { return requested_workers_; }  ///< -1: no request in this attempt

  /// Steps that are done. A worker that joins others continues from their step.
  int steps() const { return steps_; }
  void go_on_from(int steps) { steps_ = steps; }

  /// For an attempt that may end within a step: `save` saves everything that it has done, `steps` steps and a part of
  /// the next one. It is called between steps or after the attempt has ended, or never. Another call of this function
  /// replaces it; an empty `save` removes it.
  void set_final_save(int steps, Save save);

  // For executors.
  struct FinalSave {
    int steps = 0;
    Save save;
  };
  std::optional<FinalSave> take_final_save();
  bool can_save() const { return static_cast<bool>(save_); }
  void save(CheckpointWriter& out) const;
  std::uint64_t beats() const;
  void request_stop() { stop_.store(true, std::memory_order_relaxed); }
  void move_to(const Slot& slot);  ///< for a paused run that continues elsewhere; between steps

 private:
  Start start_;
  Save save_;
  std::optional<FinalSave> final_save_;
  int steps_ = 0;
  int requested_workers_ = -1;
  std::atomic<std::uint64_t> beats_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace hypertune::inline v0
