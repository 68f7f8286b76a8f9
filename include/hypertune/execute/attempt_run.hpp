// AttemptRun: one attempt performed in this process, whoever schedules it.
#pragma once

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/execute/executor.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace hypertune {

/// What an exception of the user's code says, as a cause. Call from a catch block.
inline Cause cause_of_current_exception() {
  Cause cause;
  try {
    throw;
  } catch (const Error& e) {  // a full disk is not the trial's doing
    if (e.code() == Errc::io || e.code() == Errc::corrupt) cause.blame = Blame::infrastructure;
    cause.text = e.what();
  } catch (const std::exception& e) { cause.text = e.what(); } catch (...) {
    cause.text = "an exception that is not a std::exception";
  }
  if (cause.text.empty()) cause.text = "an exception without a message";
  return cause;
}

/// Restores the newest sound checkpoint, begins the program, steps it, saves it. Used by one thread at a time; member
/// functions throw what the user's code throws.
class AttemptRun {
 public:
  /// `lost` is called for each checkpoint that could not be restored; it has been set aside by then.
  AttemptRun(const Program& program, LocalCheckpointStore& store, const std::filesystem::path& directory,
             const Launch& launch, const std::function<void(const CheckpointInfo&, const std::string&)>& lost)
      : store_(&store), context_(std::make_unique<Context>(prepare(store, directory, launch, lost))) {
    run_ = program.begin(*context_);
  }

  /// Turns a finished or stopped run into another attempt, where the trainable can; false: it is unchanged.
  bool reset(const std::filesystem::path& directory, const Launch& launch,
             const std::function<void(const CheckpointInfo&, const std::string&)>& lost) {
    auto context = std::make_unique<Context>(prepare(*store_, directory, launch, lost));
    if (!run_->reset(*context)) return false;
    context_ = std::move(context);
    return true;
  }

  std::optional<Report> step() { return run_->step(); }
  bool can_save() const { return run_->can_save(); }
  /// Writes a checkpoint of `steps` steps into a folder aside; to be sealed by the store.
  CheckpointWriter save(int steps) {
    CheckpointWriter writer = store_->begin(context_->trial(), steps);
    try {
      run_->save(writer);
    } catch (...) {
      store_->discard(writer);
      throw;
    }
    return writer;
  }
  int next_step() const { return context_->next_step(); }
  Context& context() { return *context_; }

 private:
  static Context::Start prepare(LocalCheckpointStore& store, const std::filesystem::path& directory,
                                const Launch& launch,
                                const std::function<void(const CheckpointInfo&, const std::string&)>& lost) {
    Context::Start start;
    start.trial = launch.trial;
    start.attempt = launch.attempt;
    start.point = launch.point;
    start.params = launch.params;
    start.slot = launch.slot;
    start.seed = launch.seed;
    start.directory = directory / "trials" / std::to_string(launch.trial);
    for (const auto& candidate : launch.restore) {
      try {
        start.restore = store.open(candidate);
        start.next_step = candidate.steps;
        break;
      } catch (const Error& e) {
        store.set_aside(candidate);
        lost(candidate, e.what());
      }
    }
    return start;
  }

  LocalCheckpointStore* store_;
  std::unique_ptr<Context> context_;  // outlives run_
  std::unique_ptr<TrialRun> run_;
};

}  // namespace hypertune
