// The events that make up an experiment's history: the Journal stores them, loggers see them, a restart replays them.
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
  friend bool operator==(const Objective& a, const Objective& b);
};
Objective minimize(std::string metric);
Objective maximize(std::string metric);

/// A bound on a metric, made by at_most() and at_least(). `side` is minimize if the metric must be at most `value`,
/// maximize if it must be at least `value`.
struct MetricBound {
  std::string metric;
  Mode side = Mode::minimize;
  double value = 0;
  friend bool operator==(const MetricBound& a, const MetricBound& b);
};

namespace record {

/// A driver started or resumed the experiment. The first such record of a journal describes the experiment.
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
  std::string command = {};                                   ///< that trials run, quoted for a shell; empty: not known
};
/// A trial was created. Its parameters are stored by name, so that a changed space can still read them.
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
  friend bool operator==(const WorkerPlace& a, const WorkerPlace& b);
};
struct TrialStarted {
  TrialId trial;
  Attempt attempt;
  int next_step = 0;
  std::string host;  ///< of rank 0, or of the only worker
  std::vector<int> cpus, gpus;
  std::vector<WorkerPlace> others = {};  ///< of ranks 1, 2, …
  std::uint32_t generation = 0;          ///< not 0 if a paused trial continues with workers that had changed before
};
/// The workers of a running trial have changed: a new generation of the same attempt begins.
struct TrialResized {
  TrialId trial;
  Attempt attempt;
  std::uint32_t generation = 0;
  std::vector<WorkerPlace> workers;  ///< by rank
  std::string why;
  std::vector<std::string> lost = {};  ///< the hosts of the workers that failed, in order; a host may occur twice
};
struct TrialReported {
  TrialId trial;
  Attempt attempt;
  int step;  ///< from 0
  Metrics metrics;
  bool over = false;  ///< of a program that has ended: no scheduler stops the trial here
};
/// A number of workers was requested for a trial, from its next report on, as far as there is room. A request by the
/// user takes precedence over one by the trial itself. Each holds until it is replaced.
struct WorkersRequested {
  TrialId trial;
  int workers = 0;       ///< 0: any number, as without a request
  bool by_user = false;  ///< else by the trial (Context::request_workers)
};
/// The new or changed attributes of a trial or of the experiment.
struct AttributesSet {
  TrialId trial = -1;  ///< -1: of the experiment
  Attributes attributes;
};
struct TrialCheckpointed {
  TrialId trial;
  CheckpointInfo checkpoint;
};
/// Reason of a CheckpointDropped: the policy keeps it no longer, so it is deleted.
inline constexpr const char* by_retention = "retention";
struct CheckpointDropped {
  TrialId trial;
  CheckpointInfo checkpoint;
  std::string why;  ///< by_retention, or what was wrong with it
};
struct TrialPaused {
  TrialId trial;
};
/// A paused trial took over the state of another trial, or an earlier state of its own, and continues with another
/// configuration (population based training). Its own later progress is discarded.
struct TrialExploited {
  TrialId trial;
  TrialId donor;
  CheckpointInfo checkpoint;  ///< what it continues from, and after how many steps
  Point point;                ///< its configuration from now on
  Params params;
};
/// An attempt ended that should not have. `retry`: another attempt follows.
struct AttemptFailed {
  TrialId trial;
  Attempt attempt;
  Cause cause;
  bool retry = false;
  /// The host may be the cause: the failure does not count, and the trial is tried again on another host.
  bool doubted = false;
  std::string host = {};  ///< with several workers: that of the worker that failed; empty: none did, or not known
  /// Whether it counts against the trial (max_retries). It is stored for SQL queries, which cannot find out whether a
  /// host was lost. nullopt: not known, as in records of earlier versions.
  std::optional<bool> counts = {};
};
/// Causes of a stopped trial that mean that it was given up before it was done: by a scheduler that gives no reason (in
/// journals of earlier versions, all of them), or by one that does: "stopped by asha at rung 3 …".
inline constexpr const char* by_scheduler = "scheduler";
inline constexpr const char* stopped_by = "stopped by ";
inline constexpr const char* space_changed = "the search space has changed";
/// … or by the user, from another terminal.
inline constexpr const char* by_user = "stopped by the user";
inline bool gave_up(std::string_view cause) {
  return cause == by_scheduler || cause == space_changed || cause.starts_with(stopped_by);
}
/// Text of an AttemptFailed with `retry` that follows the failed end of a trial: the user wants the trial to be tried
/// again, and its earlier failures no longer count.
inline constexpr const char* tried_again = "tried again by the user";
inline bool is_tried_again(const AttemptFailed& failed) { return failed.retry && failed.cause.text == tried_again; }
struct TrialEnded {
  TrialId trial;
  TrialState state = TrialState::completed;  ///< completed, stopped or failed
  /// Set for a failed trial. For a stopped one its text says why (the scheduler's reason, a stop condition, …), and
  /// `retry` means that a stop condition or the end of the experiment stopped it: a resumption continues the trial if
  /// the present conditions allow it.
  std::optional<Cause> cause;
  bool at_limit = false;  ///< completed by the schedule's limit of steps; a longer schedule may reopen it
};
struct HostGained {
  std::string host;
};
struct HostLost {
  std::string host, why;
  bool for_good = false;  ///< it will not come back
};
/// The driver ended in order. If this record is missing, it was killed.
struct ExperimentEnded {
  bool interrupted = false;
  std::string why;
};

using Any = std::variant<ExperimentStarted, TrialCreated, TrialStarted, TrialReported, TrialCheckpointed,
                         CheckpointDropped, TrialPaused, TrialExploited, AttemptFailed, TrialEnded, HostGained,
                         HostLost, ExperimentEnded, AttributesSet, TrialResized, WorkersRequested>;

}  // namespace record

/// A record with its position in the history.
struct Record {
  std::int64_t sequence = 0;  ///< 1, 2, 3, … without gaps
  Seconds time = 0;           ///< by the executor's clock
  record::Any what;
};

}  // namespace hypertune::inline v0
