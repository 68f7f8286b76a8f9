// The Controller's table of trials: one small entry for each.
#pragma once

#include <hypertune/execute/allocation.hpp>
#include <hypertune/schedule/scheduler.hpp>
#include <hypertune/space/search_space.hpp>
#include <hypertune/trial/checkpoint.hpp>
#include <hypertune/trial/report.hpp>
#include <hypertune/trial/resources.hpp>
#include <hypertune/trial/trial.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// The entry of every trial, ended ones included.
struct TrialEntry {
  Point point;
  int steps = 0;               ///< steps recorded; a report of an earlier step is a repetition
  int started_at = 0;          ///< the step at which the current attempt was expected to begin
  Attempt attempts = 0;        ///< attempts begun; the current one is the last
  std::uint16_t failures = 0;  ///< failures that count: by the user's code or the infrastructure, but not by lost hosts
  std::uint8_t taken = 0;      ///< attempts lost to preemption since its last progress
  TrialState state = TrialState::pending;
  Decision owed = Decision::proceed;  ///< the answer to the last report, until it is carried out
  bool judged = false;                ///< at least one report had all objectives
  bool foreign = false;       ///< recorded with another search space that it does not fit: nothing learns from it
  bool reported = false;      ///< it has reported since its last start
  bool by_condition = false;  ///< `owed` is `stop` because of a stop condition
  bool exploited = false;     ///< paused, and to go on from the checkpoint that it took over
  bool parked = false;        ///< paused, and the executor keeps its run
  /// The scheduler's answer to the last report before the pause. If it is not `pause`, the trial was paused by the user
  /// or by the scheduler of an earlier session, and the present scheduler regards it as running.
  Decision before_pause = Decision::pause;
  Seconds elapsed = 0;  ///< time it has run, all attempts together
  Seconds since = 0;    ///< when it was last started or reported
};

/// The state of a trial that holds slots.
struct LiveTrial {
  enum class Phase : std::uint8_t { running, pausing, stopping, suspending };
  Allocation allocation;           ///< of its newest generation
  std::vector<Slot> leaving = {};  ///< slots to be released once that generation runs
  bool forming = false;            ///< that generation does not run yet
  bool fixed = false;              ///< it is known that its workers cannot change while it runs
  bool elastic = false;            ///< … that they can; both false before a first report or loss
  int growths = 0;                 ///< increases of its workers since its last report
  int losses = 0;                  ///< losses of workers in a row, without a report or a commit in between
  bool too_many_losses = false;    ///< it has lost workers so often that its end counts as a failure
  int given_up = 0;                ///< new workers in a row that were given up before they had done a step
  int stayed = 0;                  ///< … and how many workers it had without the last of them
  bool over = false;               ///< its program has ended, as its last report says: it is left to end by itself
  std::optional<Cause> warned;     ///< it has to stop after its next report, as it is about to lose workers
  Metrics metrics = {};            ///< of its last report, if Options::resize is set
  Phase phase = Phase::running;
  int next_step = 0;                      ///< the step of a report that names none
  TrialState end = TrialState::stopped;   ///< with stopping: the trial's final state
  bool at_limit = false;                  ///< with stopping: completed by the schedule's limit of steps
  std::string reason;                     ///< with stopping: why, for the record
  bool by_condition = false;              ///< with stopping: because of a stop condition or the experiment's end
  std::optional<Cause> failure = {};      ///< with suspending: why the attempt has failed
  std::string failed_on = {};             ///< … and on which host, if that is known
  std::vector<CheckpointInfo> restoring;  ///< checkpoints that it may restore from: pinned meanwhile
  std::vector<std::string> reported;      ///< names of some metrics, while an objective is missing
};

/// The number of trials in each state. A value.
struct TrialCounts {
  std::array<std::int64_t, 6> by_state{};
  std::int64_t operator[](TrialState state) const { return by_state[static_cast<std::size_t>(state)]; }
  std::int64_t& operator[](TrialState state) { return by_state[static_cast<std::size_t>(state)]; }
};

/// Owns the entries, and keeps the counts consistent with their states.
class TrialTable {
 public:
  TrialId add(Point point) {
    entries_.emplace_back();
    entries_.back().point = std::move(point);
    ++counts_[TrialState::pending];
    return static_cast<TrialId>(entries_.size()) - 1;
  }
  bool contains(TrialId trial) const { return trial >= 0 && trial < static_cast<TrialId>(entries_.size()); }
  TrialEntry& operator[](TrialId trial) { return entries_[static_cast<std::size_t>(trial)]; }
  const TrialEntry& operator[](TrialId trial) const { return entries_[static_cast<std::size_t>(trial)]; }
  void set_state(TrialId trial, TrialState state) {
    auto& entry = (*this)[trial];
    --counts_[entry.state];
    ++counts_[state];
    entry.state = state;
  }
  std::int64_t size() const { return static_cast<std::int64_t>(entries_.size()); }
  const TrialCounts& counts() const { return counts_; }

 private:
  std::vector<TrialEntry> entries_;
  TrialCounts counts_;
};

}  // namespace hypertune::inline v0
