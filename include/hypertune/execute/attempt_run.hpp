// AttemptRun: one attempt performed in this process, whoever schedules it.
#pragma once

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/checkpoint/sealer.hpp>
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

/// Tells what came of a save.
template <class Tell>
void tell_saved(SealResult result, Attempt attempt, const Tell& tell, int member = 0) {
  if (result.checkpoint)
    tell(Checkpointed{result.trial, attempt, std::move(*result.checkpoint), member});
  else
    tell(SaveFailed{result.trial, result.steps, std::move(result.error)});
}

/// Restores, begins, steps, saves and parks an attempt, and knows how many steps are done and which of them are saved.
/// Every executor runs its trials through this, so that they cannot differ. Used by one thread at a time, the Context's
/// thread-safe members excepted; member functions throw what the user's code throws.
class AttemptRun {
 public:
  /// Told of each checkpoint that could not be restored; it has been set aside by then.
  using Lost = std::function<void(const CheckpointInfo&, const std::string&)>;

  /// Opens the newest sound checkpoint of `launch.restore`; no user code runs yet. Error of kind `io` where the disk
  /// fails: it may work again later, so nothing is set aside for that. Error of kind `corrupt` where none is sound and
  /// one must be.
  AttemptRun(LocalCheckpointStore& store, const std::filesystem::path& directory, const Launch& launch,
             const Lost& lost, std::uint64_t log_limit = default_log_limit, std::shared_ptr<Group> group = nullptr)
      : store_(&store),
        context_(std::make_unique<Context>(prepare(store, directory, launch, std::move(group), lost, log_limit))),
        seated_(launch.seat.has_value()) {
    saved_ = expected_ = context_->next_step();
  }

  /// Begins the program. `previous`: an attempt that has ended here, whose run becomes this one's where the trainable
  /// can be reset; its Context must live until this returns.
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
    std::optional<Report> report;        ///< none: the attempt is over
    std::optional<CheckpointInfo> made;  ///< a checkpoint that the trial made by itself
    bool stopped = false;                ///< over because the trial heeded stop_requested(), not by itself
  };
  Step step() {
    Step done;
    done.report = run_->step();
    if (done.report && done.report->step) Report::require_step(*done.report->step);
    if (done.report) {
      const int step = done.report->step.value_or(steps());
      // Its group tells by it who has reported what; and one that is alone may have gone back, too.
      if (seated_ || step != expected_) done.report->step = step;
      expected_ = step + 1;
      context_->go_on_from(expected_);
      reported_ = true;
    } else {
      done.stopped = context_->stop_requested();
    }
    done.made = run_->adopted();
    if (done.made && done.made->steps == steps()) saved_ = steps();
    return done;
  }

  bool can_save() const { return run_->can_save(); }
  /// Writes a checkpoint of the steps done into a folder aside, to be sealed by the store; nullopt where the trial
  /// cannot save or has nothing new, and of several workers for all but rank 0.
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
  /// Of one that is told to end between two steps. Where rank 0 is gone with its report, the last commit is what
  /// counts.
  std::optional<CheckpointWriter> save_at_end() { return leads() ? save() : save_left(); }
  /// Of an attempt that has ended within a step: the checkpoint that it has left behind.
  std::optional<CheckpointWriter> save_left() {
    const auto left = context_->take_left();
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
  /// To be called when the run is stopped between steps; the checkpoint that a run which cannot save() made in answer.
  std::optional<CheckpointInfo> stop_and_save() {
    if (run_->can_save()) return std::nullopt;
    auto made = run_->stop_and_save();
    if (made && made->steps == steps()) saved_ = steps();
    return made;
  }
  /// Whether a paused run may be ended, as a checkpoint brings it back to where it is.
  bool replaceable() const { return run_->can_save() || (steps() > 0 && saved_ == steps()); }

  /// What the attempt failed of, where the run threw `cause`. That the checkpoint which it was to go on from vanished
  /// before it had reported anything, and so perhaps before it had read that, is not its own doing: `lost` is told.
  /// Of a group rank 0 alone can say so: others need not report, and once rank 0 has, the checkpoint may be dropped.
  Cause blame(Cause cause, const Lost& lost) const {
    const auto& from = context_->restore();
    std::error_code error;  // one that cannot be looked at is there
    if (!from || reported_ || !leads() || std::filesystem::exists(from->directory(), error) || error) return cause;
    lost(from->info(), "it vanished before it was read");
    return Cause{
        .source = FailureSource::preemption,
        .text = detail::format("checkpoint {} vanished before it was read: {}", from->info().name, cause.text)};
  }

  /// The run stays in memory, at rest, until proceed().
  void park() {
    parked_ = true;
    run_->suspend();
  }
  /// `slot`: what it may use from now on.
  void proceed(const Slot& slot) {
    if (!std::exchange(parked_, false)) return;
    context_->move_to(slot);
    run_->resume();
  }

  bool parked() const { return parked_; }
  int steps() const { return context_->steps(); }  ///< done
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
    // What an earlier attempt was writing when it was killed; of several workers the first one looks.
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
  int expected_ = 0;  // the step that a report without a number is taken for
  bool parked_ = false;
  bool reported_ = false;
};

}  // namespace hypertune::inline v0
