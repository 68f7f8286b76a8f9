// The events that make up an experiment's history: what the Journal keeps, loggers see, and a restart replays.
#pragma once

#include <hypertune/space/search_space.hpp>
#include <hypertune/trial/checkpoint.hpp>
#include <hypertune/trial/report.hpp>
#include <hypertune/trial/trial.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

enum class Mode : std::uint8_t { minimize, maximize };

constexpr const char* to_string(Mode mode) { return mode == Mode::minimize ? "min" : "max"; }

/// A metric and its direction.
struct Objective {
  std::string metric;
  Mode mode = Mode::minimize;
  friend bool operator==(const Objective&, const Objective&) = default;
};
inline Objective minimize(std::string metric) { return {std::move(metric), Mode::minimize}; }
inline Objective maximize(std::string metric) { return {std::move(metric), Mode::maximize}; }

/// A bound that a good result keeps: made by at_most() and at_least(). `side` is minimize where the metric must be at
/// most `value`, maximize where it must be at least that.
struct MetricBound {
  std::string metric;
  Mode side = Mode::minimize;
  double value = 0;
  friend bool operator==(const MetricBound&, const MetricBound&) = default;
};

namespace record {

/// A driver began or resumed the experiment. The first one of a journal describes it.
struct ExperimentStarted {
  std::string name;
  std::vector<Objective> objectives;
  std::string space;  ///< SearchSpace::describe()
  std::string searcher, scheduler, executor;
  std::int64_t samples = 0;
  std::uint64_t seed = 0;
  bool resumed = false;
  std::vector<MetricBound> constraints = {};
  std::string searcher_options = {}, scheduler_options = {};  ///< options_text(); empty: not known
  std::string command = {};                                   ///< what trials run, as a shell's words; empty: not known
};
/// A trial exists. Its parameters are kept by name, so that a changed space can still read them.
struct TrialCreated {
  TrialId trial;
  Point point;
  Params params;
  bool known = false;  ///< its result was given by the user, nothing was run
};
/// Where a worker runs.
struct WorkerPlace {
  std::string host;
  std::vector<int> cpus, gpus;
  friend bool operator==(const WorkerPlace&, const WorkerPlace&) = default;
};
struct TrialStarted {
  TrialId trial;
  Attempt attempt;
  int next_step = 0;
  std::string host;  ///< of rank 0, or of the one worker there is
  std::vector<int> cpus, gpus;
  std::vector<WorkerPlace> others = {};  ///< of ranks 1, 2, …
  std::uint32_t generation = 0;          ///< not 0 where a paused trial goes on with workers that had changed before
};
/// The workers of a running trial are others from now on: a new generation of the same attempt.
struct TrialResized {
  TrialId trial;
  Attempt attempt;
  std::uint32_t generation = 0;
  std::vector<WorkerPlace> workers;  ///< by rank
  std::string why;
  std::vector<std::string> lost = {};  ///< the hosts of workers that have failed, in order; one may be there twice
};
struct TrialReported {
  TrialId trial;
  Attempt attempt;
  int step;  ///< from 0
  Metrics metrics;
};
/// A trial is to have so many workers from its next report on, as far as there is room. What a person asks for
/// comes before what the trial itself does; each of the two lasts until it is said anew.
struct WorkersAsked {
  TrialId trial;
  int workers = 0;       ///< 0: any number, as if nothing had been said
  bool by_user = false;  ///< else: by the trial (Context::want_workers)
};
/// Attributes of a trial, or of the experiment, as far as they are new or have changed.
struct AttributesSet {
  TrialId trial = -1;  ///< -1: of the experiment
  Attributes attributes;
};
struct TrialCheckpointed {
  TrialId trial;
  CheckpointInfo checkpoint;
};
struct CheckpointDropped {
  TrialId trial;
  CheckpointInfo checkpoint;
  std::string why;  ///< "retention", or what was wrong with it
};
struct TrialPaused {
  TrialId trial;
};
/// A paused trial took over the state of another one, or of its own past, and goes on with another configuration
/// (population based training). What it had learnt by itself is given up.
struct TrialExploited {
  TrialId trial;
  TrialId donor;
  CheckpointInfo checkpoint;  ///< what it goes on from, after so many steps
  Point point;                ///< its configuration from now on
  Params params;
};
/// An attempt ended that was not meant to. `retry`: another attempt follows.
struct AttemptFailed {
  TrialId trial;
  Attempt attempt;
  Cause cause;
  bool retry = false;
  /// Perhaps the doing of the host: it does not count, and the trial is tried again on another one.
  bool doubted = false;
  std::string host = {};  ///< of several workers: where the one was that failed; empty: none did, or nobody knows
  /// Whether it counts against the trial (max_failures). For SQL, which cannot tell by itself what became of hosts;
  /// nullopt: nobody has said, as in records of earlier versions.
  std::optional<bool> counts = {};
};
/// Causes of a stopped trial that say that it was given up, not that it has done what it was there for: by a scheduler
/// that does not say why (and by all of them in journals of earlier versions), or "stopped by asha at rung 3 …".
inline constexpr const char* by_scheduler = "scheduler";
inline constexpr const char* stopped_by = "stopped by ";
inline constexpr const char* space_changed = "the search space has changed";
/// … and that a person ended it, from another terminal.
inline constexpr const char* by_user = "stopped by the user";
inline bool gave_up(std::string_view cause) {
  return cause == by_scheduler || cause == space_changed || cause.starts_with(stopped_by);
}
/// Text of an AttemptFailed with `retry` that follows the failed end of a trial: a person wants that tried again, and
/// what failed before counts no more.
inline constexpr const char* tried_again = "tried again by the user";
inline bool is_tried_again(const AttemptFailed& failed) { return failed.retry && failed.cause.text == tried_again; }
struct TrialEnded {
  TrialId trial;
  TrialState state = TrialState::completed;  ///< completed, stopped or failed
  /// with failed; with stopped, why (the scheduler's words, a stop condition's, …) in text, and `retry`: by a stop
  /// condition or the end of the experiment; where the present conditions say otherwise, a resumption reopens it
  std::optional<Cause> cause;
  bool at_limit = false;  ///< with completed: by the schedule's limit of steps; a longer schedule may reopen it
};
struct HostGained {
  std::string host;
};
struct HostLost {
  std::string host, why;
  bool for_good = false;  ///< it was not to come back
};
/// The driver ended in order. Without it, it was killed.
struct ExperimentEnded {
  bool interrupted = false;
  std::string why;
};

using Any = std::variant<ExperimentStarted, TrialCreated, TrialStarted, TrialReported, TrialCheckpointed,
                         CheckpointDropped, TrialPaused, TrialExploited, AttemptFailed, TrialEnded, HostGained,
                         HostLost, ExperimentEnded, AttributesSet, TrialResized, WorkersAsked>;

}  // namespace record

/// A record with its place in the history.
struct Record {
  std::int64_t sequence = 0;  ///< 1, 2, 3, … without gaps
  Seconds time = 0;           ///< of the executor's clock
  record::Any what;
};

}  // namespace hypertune::inline v0
