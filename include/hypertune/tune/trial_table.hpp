// The trials of an experiment as the Controller keeps them: a small entry each, whatever their number.
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

/// What is kept of every trial, ended ones included.
struct TrialEntry {
  Point point;
  int steps = 0;               ///< steps recorded: a report of an earlier step is a repetition
  int started_at = 0;          ///< the step that the current attempt was expected to begin with
  Attempt attempts = 0;        ///< attempts begun; the current one is the last
  std::uint16_t failures = 0;  ///< attempts that ended by the user's code or the infrastructure, lost hosts apart
  std::uint8_t taken = 0;      ///< attempts taken from it by others than itself, since it has come further
  TrialState state = TrialState::pending;
  Decision owed = Decision::proceed;  ///< the answer to the last report, until it has been acted upon
  bool judged = false;                ///< at least one report carried every objective
  bool foreign = false;       ///< from a record whose space this experiment does not share: nobody learns from it
  bool reported = false;      ///< has reported since its last start
  bool by_condition = false;  ///< a stop condition is why it is owed a stop
  bool exploited = false;     ///< paused, and to go on from what it has taken over
  bool parked = false;        ///< paused, with its run kept by the executor
  /// The scheduler's answer to the last report before its pause. Where that is not to pause, another scheduler of
  /// before or a person had it paused, and to the scheduler it runs.
  Decision before_pause = Decision::pause;
  Seconds elapsed = 0;  ///< time it has run, all attempts together
  Seconds since = 0;    ///< when it was last started or reported
};

/// What is kept of a trial that holds slots.
struct LiveTrial {
  enum class Phase : std::uint8_t { running, pausing, stopping, suspending };
  Allocation allocation;           ///< of its newest generation
  std::vector<Slot> leaving = {};  ///< what is free once that generation runs
  bool forming = false;            ///< … which it does not yet
  bool fixed = false;              ///< its workers cannot change while it runs
  bool elastic = false;            ///< … and they can: neither is known before a first report or loss
  int growths = 0;                 ///< since its last report
  int losses = 0;                  ///< of workers in a row, without a report or a commit in between
  bool futile = false;             ///< it has lost workers so often that its end counts as a failure
  std::optional<Cause> warned;     ///< it cannot go on after its next report, as some of its workers will be lost
  Metrics metrics = {};            ///< of its last report, where Options::resize asks for them
  Phase phase = Phase::running;
  int next_step = 0;                      ///< the step that a report without a number is of
  TrialState end = TrialState::stopped;   ///< with stopping: what the trial becomes
  bool at_limit = false;                  ///< with stopping: completed by the schedule's limit of steps
  std::string reason;                     ///< with stopping: why, for the record
  bool by_condition = false;              ///< with stopping: a stop condition or the experiment's end is the reason
  std::optional<Cause> failure = {};      ///< with suspending: the attempt has failed of this
  std::string failed_on = {};             ///< … and the host where it has, if that is known
  std::vector<CheckpointInfo> restoring;  ///< what it may restore from: not to be dropped meanwhile
  std::vector<std::string> reported;      ///< metrics, some of them, while one that is tuned is missing
};

/// How many trials are in each state; a value to copy and show.
struct TrialCounts {
  std::array<std::int64_t, 6> by_state{};
  std::int64_t operator[](TrialState state) const { return by_state[static_cast<std::size_t>(state)]; }
  std::int64_t& operator[](TrialState state) { return by_state[static_cast<std::size_t>(state)]; }
};

/// Owns the entries and keeps the counts in step with the states.
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
