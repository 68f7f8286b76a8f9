// What is known of an experiment and of each of its trials, as plain values.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/linkage.hpp>
#include <hypertune/record/failure_counts.hpp>
#include <hypertune/record/record.hpp>

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0 {

/// The best report of a metric. `step` counts from 0.
struct BestReport {
  std::string metric;
  int step = 0;
  double value = 0;
  friend bool operator==(const BestReport&, const BestReport&) = default;
};

/// From which step on a configuration was used, and by which trial.
struct ScheduleEntry {
  int from_step = 0;
  Params params;
  TrialId trial = -1;
  friend bool operator==(const ScheduleEntry&, const ScheduleEntry&) = default;
};

/// What is known of one trial.
struct TrialResult : FailureCounts {
  TrialId trial = -1;
  TrialState state = TrialState::pending;
  Params params;
  Point point;                     ///< the same as coordinates of the space
  int steps = 0;                   ///< steps reported: the last report's step plus one
  Metrics metrics;                 ///< of the last report
  std::optional<BestReport> best;  ///< of the first objective (or the metric asked for); never NaN or infinite
  std::optional<bool> feasible;    ///< whether `best` meets the constraints on metrics; empty: none, or not known
  std::optional<Cause> cause;      ///< why it was stopped or failed, or why its last attempt failed
  int attempts = 0;                ///< starts
  bool known = false;              ///< its result was given by the user, nothing was run
  Seconds created = 0;
  std::optional<Seconds> started, ended;           ///< first start, final end
  std::optional<Seconds> duration;                 ///< from there to there, without the time between drivers
  std::vector<CheckpointInfo> checkpoints;         ///< those kept, in the order of saving
  Attributes attributes;                           ///< noted by its reports, or by a person
  std::int64_t first_record = 0, last_record = 0;  ///< numbers of its first and last record in the Journal

  /// The configuration as the user's struct: `result.config(space)` with the space of the experiment.
  template <class Space>
  auto config(const Space& space) const {
    return space.config(point);
  }
};

/// What is known of the experiment as a whole.
struct ExperimentInfo {
  std::string name;
  std::vector<Objective> objectives;
  std::vector<MetricBound> constraints;  ///< on metrics
  std::string space;                     ///< SearchSpace::describe()
  std::string searcher, scheduler, executor;
  std::string searcher_options, scheduler_options;  ///< "grace_period: 1, max_steps: 81"; empty: not known
  std::string command;                              ///< what trials run, as a shell's words; empty: not known
  std::int64_t samples = 0;                         ///< as the last driver was asked; 0: no limit
  /// Trials that there are to be in all: `samples`, or what was made where a person added more, and known results; 0:
  /// no limit.
  std::int64_t planned = 0;
  std::uint64_t seed = 0;
  Attributes attributes;  ///< of the experiment as a whole
  int starts = 0;         ///< 1, and one more for every resume; 0: nothing was recorded yet
  Seconds started = 0;
  Seconds updated = 0;           ///< time of the last record
  Seconds elapsed = 0;           ///< up to there, without the time between drivers
  std::optional<Seconds> ended;  ///< of the last driver's orderly end; without it, it runs or was killed
  bool interrupted = false;      ///< the last driver ended before all was done
  std::string why;               ///< why it ended, in words
  std::int64_t records = 0;      ///< read so far
  std::int64_t reports = 0;
};

/// "trial 7  accuracy=0.985 at step 20  lr=0.01 hidden=64"; what could harm a terminal is shown as '?'.
std::string to_string(const TrialResult& result);

}  // namespace hypertune::inline v0

/// As to_string().
template <>
struct fmt::formatter<hypertune::TrialResult> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const hypertune::TrialResult& result, Context& context) const {
    return hypertune::detail::put(hypertune::to_string(result), context);
  }
};

#ifndef HYPERTUNE_COMPILED
#include <hypertune/record/impl/trial_result.hpp>
#endif
