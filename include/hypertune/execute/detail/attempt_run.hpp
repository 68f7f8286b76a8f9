// AttemptRun: one attempt that runs in this process, for every executor.
#pragma once

#include <hypertune/checkpoint/detail/sealer.hpp>
#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/trial/failure.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace hypertune::inline v0 {

/// Passes the result of a save to `tell`.
template <class Tell>
void tell_saved(SealResult result, Attempt attempt, const Tell& tell, int member = 0) {
  if (result.checkpoint)
    tell(Checkpointed{result.trial, attempt, std::move(*result.checkpoint), member});
  else
    tell(SaveFailed{result.trial, result.steps, std::move(result.error)});
}

/// Restores, begins, steps, saves and parks an attempt, and keeps track of the steps done and saved. Every executor
/// runs its trials through this class, so that all behave the same. Not thread-safe, except for the thread-safe members
/// of the Context. Member functions throw what the user's code throws.
class AttemptRun {
 public:
  /// Called for each checkpoint that could not be restored, after it was set aside.
  using Lost = std::function<void(const CheckpointInfo&, const std::string&)>;

  /// Opens the newest undamaged checkpoint of `launch.restore`; no user code runs yet. Throws an Error of kind `io` if
  /// the disk fails; nothing is set aside then, as the disk may work again later. Throws an Error of kind `corrupt` if
  /// no checkpoint is undamaged and launch.must_restore is set.
  AttemptRun(LocalCheckpointStore& store, const std::filesystem::path& directory, const Launch& launch,
             const Lost& lost, std::uint64_t log_limit = default_log_limit, std::shared_ptr<Group> group = nullptr)
      : store_(&store),
        context_(std::make_unique<Context>(prepare(store, directory, launch, std::move(group), lost, log_limit))),
        seated_(launch.seat.has_value()) {
    saved_ = expected_ = context_->next_step();
  }

  /// Begins the program. `previous`: an attempt that has ended in this process, whose run is reused if the trainable
  /// can be reset. Its Context must live until this function returns.
  void begin(const Program& program, AttemptRun* previous = nullptr) {
    if (previous != nullptr && previous->run_ && previous->run_->reset(*context_)) {
      run_ = std::move(previous->run_);
      return;
    }
    if (previous != nullptr) previous->run_.reset();
    run_ = program.begin(*context_);
  }

  /// How a step ended.
  struct Step {
    std::optional<Report> report;        ///< nullopt: the attempt is over
    std::optional<CheckpointInfo> made;  ///< a checkpoint that the trial made itself
    std::optional<SaveFailed> refused;   ///< … or why that was not taken
    bool stopped = false;                ///< the attempt is over because the trial obeyed stop_requested()
  };
  Step step() {
    Step done;
    done.report = run_->step();
    if (done.report && done.report->step) Report::require_step(*done.report->step);
    if (done.report) {
      const int step = done.report->step.value_or(steps());
      // A group compares its members' reports by step; and a single worker may have gone back to an earlier step.
      if (seated_ || step != expected_) done.report->step = step;
      expected_ = step + 1;
      context_->go_on_from(expected_);
      reported_ = true;
    } else {
      done.stopped = context_->stop_requested();
    }
    done.made = run_->adopted();
    if (auto why = run_->not_adopted()) done.refused = SaveFailed{context_->trial(), steps(), std::move(*why)};
    if (done.made && done.made->steps == steps()) saved_ = steps();
    return done;
  }

  bool can_save() const { return run_->can_save(); }
  /// Writes a checkpoint of the steps done into a temporary folder, to be sealed by the store. nullopt if the trial
  /// cannot save or has nothing new, or if this is a worker other than rank 0.
  std::optional<CheckpointWriter> save() {
    if (!run_->can_save() || saved_ == steps() || !leads()) return std::nullopt;
    CheckpointWriter writer = store_->begin(context_->trial(), steps());
    try {
      run_->save(writer);
    } catch (...) {
      store_->discard(writer);
      throw;
    }
    saved_ = steps();
    return writer;
  }
  /// For an attempt that is told to end between two steps. Workers other than rank 0 save their last commit, for when
  /// rank 0 was lost with its report.
  std::optional<CheckpointWriter> save_at_end() { return leads() ? save() : save_left(); }
  /// For an attempt that has ended within a step: writes the checkpoint that it has left (Context::take_final_save()).
  std::optional<CheckpointWriter> save_left() {
    const auto left = context_->take_final_save();
    if (!left) return std::nullopt;
    CheckpointWriter writer = store_->begin(context_->trial(), left->steps);
    try {
      left->save(writer);
    } catch (...) {
      store_->discard(writer);
      throw;
    }
    return writer;
  }
  /// To be called when the run is stopped between steps. Returns the checkpoint that a run which cannot save() makes in
  /// answer.
  std::optional<CheckpointInfo> stop_and_save() {
    if (run_->can_save()) return std::nullopt;
    auto made = run_->stop_and_save();
    if (made && made->steps == steps()) saved_ = steps();
    return made;
  }
  /// Whether a paused run may be ended, because it can be restored to its present step from a checkpoint.
  bool replaceable() const { return run_->can_save() || (steps() > 0 && saved_ == steps()); }

  /// The cause of the attempt's failure, if the run threw `cause`. If the checkpoint to restore from vanished before
  /// the attempt had reported anything, and so perhaps before it had read the checkpoint, the failure is not the
  /// trial's: `lost` is called and a preemption returned. In a group only rank 0 can tell this: the others need not
  /// report, and once rank 0 has reported, the checkpoint may be dropped.
  Cause blame(Cause cause, const Lost& lost) const {
    const auto& from = context_->restore();
    std::error_code error;  // a checkpoint that cannot be examined counts as existing
    if (!from || reported_ || !leads() || std::filesystem::exists(from->directory(), error) || error) return cause;
    lost(from->info(), "it vanished before it was read");
    return Cause{
        .source = FailureSource::preemption,
        .text = detail::format("checkpoint {} vanished before it was read: {}", from->info().name, cause.text)};
  }

  /// Suspends the run, which stays in memory until proceed().
  void park() {
    parked_ = true;
    run_->suspend();
  }
  /// Goes on after park(). `slot`: the resources to use from now on.
  void proceed(const Slot& slot) {
    if (!std::exchange(parked_, false)) return;
    context_->move_to(slot);
    run_->resume();
  }

  bool parked() const { return parked_; }
  int steps() const { return context_->steps(); }  ///< steps done
  Context& context() { return *context_; }

 private:
  static Context::Start prepare(LocalCheckpointStore& store, const std::filesystem::path& directory,
                                const Launch& launch, std::shared_ptr<Group> group, const Lost& lost,
                                std::uint64_t log_limit) {
    Context::Start start;
    start.trial = launch.trial;
    start.attempt = launch.attempt;
    start.point = launch.point;
    start.params = launch.params;
    start.slot = launch.allocation.lead;
    start.seed = launch.seed;
    start.directory = directory / "trials" / std::to_string(launch.trial);
    start.checkpoints = store.root();
    start.log_limit = log_limit;
    start.group = std::move(group);
    start.log = log_name(key_of(launch).second);
    // Cleans up what an earlier attempt was writing when it was killed. In a group only the first member does.
    if (launch.attempt > 0 && (!launch.seat || launch.seat->member == 0)) store.recover(launch.trial);
    for (const auto& candidate : launch.restore) {
      try {
        start.restore = store.open(candidate);
        start.next_step = candidate.steps;
        break;
      } catch (const Error& e) {
        if (e.code() != Errc::corrupt) throw;
        store.set_aside(candidate);
        lost(candidate, e.what());
      }
    }
    if (launch.must_restore && !launch.restore.empty() && !start.restore)
      fail(Errc::corrupt, "none of the checkpoints that trial {} is to go on from is sound", launch.trial);
    return start;
  }

  bool leads() const { return !seated_ || context_->group().leads(); }

  LocalCheckpointStore* store_;
  std::unique_ptr<Context> context_;  // outlives run_
  std::unique_ptr<TrialRun> run_;
  bool seated_ = false;
  int saved_ = 0;     // steps done at the last save
  int expected_ = 0;  // the step of a report that names none
  bool parked_ = false;
  bool reported_ = false;
};

}  // namespace hypertune::inline v0
