// Program: what executors run, with the user's types erased.
#pragma once

#include <hypertune/trial/checkpoint.hpp>
#include <hypertune/trial/context.hpp>
#include <hypertune/trial/report.hpp>

#include <memory>
#include <optional>

namespace hypertune::inline v0 {

/// A running attempt. To be used by one thread at a time; destroying it frees everything the trial holds.
class TrialRun {
 public:
  virtual ~TrialRun() = default;

  /// Trains to the next report; nullopt when the trial has ended by itself. Throws what the user's code throws.
  virtual std::optional<Report> step() = 0;

  virtual bool can_save() const = 0;
  /// Called between steps, only if can_save().
  virtual void save(CheckpointWriter& out) = 0;

  /// The checkpoint that the trial made itself and named in its last report, if any; returned only once.
  virtual std::optional<CheckpointInfo> adopted() { return std::nullopt; }
  /// Why such a checkpoint was not taken, if so; returned only once.
  virtual std::optional<std::string> not_adopted() { return std::nullopt; }

  /// Called when a run that cannot save() is stopped between steps. Processes of the run (a command) have ended when
  /// this returns. Returns the checkpoint that the trial made by itself in response, if any.
  virtual std::optional<CheckpointInfo> stop_and_save() { return std::nullopt; }

  /// Called when the run is paused in memory, and when it continues. A run with its own processes stops them in
  /// between.
  virtual void suspend() {}
  virtual void resume() {}

  /// Turns this run into a fresh start of another configuration, keeping what is costly to create (a loaded data set, a
  /// CUDA context). False if it cannot; the run is then unchanged. `context` replaces the earlier one, which is
  /// destroyed.
  virtual bool reset(Context& context) {
    static_cast<void>(context);
    return false;
  }
};

/// Starts attempts. Immutable; begin() may be called from several threads at once.
class Program {
 public:
  virtual ~Program() = default;
  /// `context` outlives the run. Throws what the user's constructor throws.
  virtual std::unique_ptr<TrialRun> begin(Context& context) const = 0;
  /// Whether runs can be reset(), so that a worker process may serve several trials.
  virtual bool reusable() const { return false; }
  /// Whether a run that has ended should be kept and reset for the next trial, because it holds something that is
  /// costly to create.
  virtual bool keeps() const { return false; }
  /// Whether the computing is done by the run's own processes, which are gone, with all they hold, when the run has
  /// ended.
  virtual bool external() const { return false; }
  /// Seconds that a run may take to end when it is asked to. It is not killed earlier.
  virtual double stop_grace() const { return 0; }
};

}  // namespace hypertune::inline v0
