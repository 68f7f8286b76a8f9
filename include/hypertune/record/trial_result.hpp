// What is known of an experiment and of each of its trials, as plain values.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/record/detail/failure_counts.hpp>
#include <hypertune/record/record.hpp>

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
  friend bool operator==(const BestReport& a, const BestReport& b);
};

/// A configuration, the first step for which it was used, and the trial that used it.
struct ScheduleEntry {
  int from_step = 0;
  Params params;
  TrialId trial = -1;
  friend bool operator==(const ScheduleEntry& a, const ScheduleEntry& b);
};

/// What is known of one trial.
struct TrialResult : FailureCounts {
  TrialId trial = -1;
  TrialState state = TrialState::pending;
  Params params;
  Point point;                     ///< the same in coordinates of the space
  int steps = 0;                   ///< steps reported: the last report's step plus one
  Metrics metrics;                 ///< of the last report
  std::optional<BestReport> best;  ///< of the first objective (or the metric asked for); never NaN or infinite
  std::optional<bool> feasible;    ///< whether `best` meets the constraints; empty: there are none, or not known
  std::optional<Cause> cause;      ///< why it was stopped or failed, or why its last attempt failed
  int attempts = 0;                ///< number of starts
  bool known = false;              ///< its result was given by the user, nothing was run
  Seconds created = 0;
  std::optional<Seconds> started, ended;           ///< first start, final end
  std::optional<Seconds> duration;                 ///< between these two, without the time between drivers
  std::vector<CheckpointInfo> checkpoints;         ///< those that are kept, in the order of saving
  Attributes attributes;                           ///< set by its reports or by the user
  std::int64_t first_record = 0, last_record = 0;  ///< numbers of its first and last record in the Journal

  TrialResult();
  TrialResult(const TrialResult& other);
  TrialResult(TrialResult&& other) noexcept;
  TrialResult& operator=(const TrialResult& other);
  TrialResult& operator=(TrialResult&& other) noexcept;
  ~TrialResult();

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
  std::string command;                              ///< that trials run, quoted for a shell; empty: not known
  std::int64_t samples = 0;                         ///< requested from the last driver; 0: no limit
  /// The number of trials that there are to be: `samples`, or the trials that were created if the user added more, plus
  /// the known results; 0: no limit.
  std::int64_t planned = 0;
  std::uint64_t seed = 0;
  Attributes attributes;  ///< of the experiment as a whole
  int starts = 0;         ///< 1, plus one for every resume; 0: nothing is recorded yet
  Seconds started = 0;
  Seconds updated = 0;           ///< time of the last record
  Seconds elapsed = 0;           ///< until then, without the time between drivers
  std::optional<Seconds> ended;  ///< when the last driver ended in order; empty: it runs or was killed
  bool interrupted = false;      ///< the last driver ended before everything was done
  std::string why;               ///< why it ended, in words
  std::int64_t records = 0;      ///< number of records read so far
  std::int64_t reports = 0;

  /// Whether a trial may be the best one: it has not failed, and its best report meets the constraints, if there are
  /// any.
  bool admits(const TrialResult& trial) const {
    return trial.state != TrialState::failed && (constraints.empty() || trial.feasible.value_or(false));
  }
};

/// "trial 7 accuracy=0.985 at step 20 lr=0.01 hidden=64"; characters that could harm a terminal are shown as '?'.
std::string to_string(const TrialResult& result);

}  // namespace hypertune::inline v0

/// As to_string().
template <>
struct fmt::formatter<hypertune::TrialResult> : hypertune::detail::TextFormatter {};
