// AttemptMachine: decides what an attempt in this process does next, given its commands. No I/O.
#pragma once

#include <hypertune/execute/executor.hpp>

#include <cstdint>
#include <optional>
#include <utility>

namespace hypertune::inline v0 {

/// Used by threads, worker processes, the inline executor and the simulation to carry out Launch, Continue, Pause and
/// Stop: the code that drives an attempt asks next() what to do, does it with an AttemptRun, and calls reported() or
/// ended() with the outcome. Not thread-safe.
class AttemptMachine {
 public:
  enum class Do : std::uint8_t {
    wait,   ///< wait for another command
    begin,  ///< begin the program, from the checkpoint of the Launch
    step,   ///< do a step (after a save, if `save`)
    park,   ///< keep the run and wait (after a save, if `save`); if not `keep` and it can save: save and end instead
    end,    ///< stop the attempt (after a save, if `save`); it may not have begun
    leave,  ///< worker processes: exit
  };
  struct Action {
    Do what = Do::wait;
    bool save = false;
    bool keep = true;
  };

  Action next() {
    switch (phase_) {
      case Phase::fresh:
        if (stop_) return {.what = Do::end};
        phase_ = Phase::running;
        return {.what = Do::begin};
      case Phase::running: return stop_ ? Action{.what = Do::end, .save = stop_->save} : Action{.what = Do::step};
      case Phase::waiting: {
        if (stop_) return {.what = Do::end, .save = stop_->save};
        if (!answer_) return {};
        const Action answer = *std::exchange(answer_, std::nullopt);
        phase_ = answer.what == Do::park ? Phase::parked : Phase::running;
        return answer;
      }
      case Phase::parked: return stop_ ? Action{.what = Do::end} : Action{};
      case Phase::over: break;
    }
    return {};
  }

  /// A report is about to be sent: the attempt waits for its answer.
  void reported() { phase_ = Phase::waiting; }
  /// The attempt is over, and this is about to be sent.
  void ended() { phase_ = Phase::over; }

  /// Whether a report waits for its answer. Without one, an answer is ignored.
  bool expects_answer() const { return phase_ == Phase::waiting && !answer_; }
  void on(const Continue& c) {
    if (expects_answer()) answer_ = Action{.what = Do::step, .save = c.save};
  }
  void on(const Pause& c) {
    if (expects_answer()) answer_ = Action{.what = Do::park, .save = c.save, .keep = c.keep};
  }
  /// May be called at any time.
  void on(const Stop& c) { stop_ = c; }
  /// A Launch continues the parked attempt.
  void resume() {
    phase_ = Phase::waiting;
    answer_ = Action{.what = Do::step};
  }

  bool stepping() const { return phase_ == Phase::running; }  ///< within the user's code: stepping or beginning
  bool parked() const { return phase_ == Phase::parked; }
  bool stop_requested() const { return stop_.has_value(); }
  bool save_requested() const { return stop_ && stop_->save; }  ///< a stop with a checkpoint, if one can be made

 private:
  enum class Phase : std::uint8_t { fresh, running, waiting, parked, over };
  Phase phase_ = Phase::fresh;
  std::optional<Action> answer_;
  std::optional<Stop> stop_;
};

}  // namespace hypertune::inline v0
