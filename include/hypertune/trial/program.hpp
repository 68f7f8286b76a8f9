// Program: what executors run, with the user's types erased.
#pragma once

#include <hypertune/trial/checkpoint.hpp>
#include <hypertune/trial/context.hpp>
#include <hypertune/trial/report.hpp>

#include <memory>
#include <optional>

namespace hypertune::inline v0 {

/// One attempt under way. Used by one thread at a time; destroying it frees everything the trial holds.
class TrialRun {
 public:
  virtual ~TrialRun() = default;

  /// Trains to the next report; nullopt when the trial has ended by itself. Throws what the user's code throws.
  virtual std::optional<Report> step() = 0;

  virtual bool can_save() const = 0;
  /// Called between steps, only if can_save().
  virtual void save(CheckpointWriter& out) = 0;

  /// The checkpoint that the trial made by itself and named in its last report, if any; given once.
  virtual std::optional<CheckpointInfo> adopted() { return std::nullopt; }

  /// Called when a run that cannot save() is stopped between steps: whatever of it runs by itself (a command) ends
  /// before this returns. The result: a checkpoint that the trial made by its own means in answer, if any.
  virtual std::optional<CheckpointInfo> stop_and_save() { return std::nullopt; }

  /// Called when the run is paused and stays in memory, and when it goes on: a run with processes of its own stops
  /// them meanwhile.
  virtual void suspend() {}
  virtual void resume() {}

  /// Turns this run into a fresh start of another configuration, keeping what is costly to make (a loaded data set, a
  /// CUDA context). False if it cannot; then the run is unchanged. `context` replaces the earlier one, which dies.
  virtual bool reset(Context& context) {
    static_cast<void>(context);
    return false;
  }
};

/// How to begin an attempt. Immutable; begin() may be called from several threads at once.
class Program {
 public:
  virtual ~Program() = default;
  /// `context` outlives the run. Throws what the user's constructor throws.
  virtual std::unique_ptr<TrialRun> begin(Context& context) const = 0;
  /// Whether runs can be reset(), so that a worker process may serve several trials.
  virtual bool reusable() const { return false; }
  /// Whether a run that has ended is worth keeping for the next trial, which resets it: it holds what is costly to
  /// make.
  virtual bool keeps() const { return false; }
  /// Whether what computes are processes of the run's own, which are gone (with what they hold) when it has ended.
  virtual bool external() const { return false; }
  /// Seconds that a run may take to leave when it is asked to: what ends it by force waits longer.
  virtual double grace() const { return 0; }
};

}  // namespace hypertune::inline v0
