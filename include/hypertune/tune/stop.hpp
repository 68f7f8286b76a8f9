// Stop conditions: when a trial, or the whole experiment, ends.
#pragma once

#include <hypertune/option.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/trial/report.hpp>
#include <hypertune/trial/trial.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace hypertune::inline v0 {

/// What a condition sees of one trial, right after a report of that trial.
struct TrialProgressView {
  TrialId trial;
  int steps;               ///< steps done, this one included
  const Metrics& metrics;  ///< of this report
  Seconds elapsed = 0;     ///< time the trial has run, all attempts together
};

/// What a condition sees of the whole experiment. It is checked after each report, after the end of each trial, and
/// when a time limit has passed.
struct ExperimentProgressView {
  const TrialProgressView* report = nullptr;            ///< the report that this check follows, if any
  TrialId ended = -1;                                   ///< the trial whose end this check follows, if any
  TrialState ended_state = TrialState::running;         ///< how that trial ended
  std::int64_t total_steps = 0;                         ///< steps done by all trials together
  std::int64_t completed = 0, stopped = 0, failed = 0;  ///< trials that have ended, by their state
  Seconds elapsed = 0;  ///< time the experiment has run, all sessions together, without the time between them
};

/// The results improve no more: the last values of the trials (for an experiment) or of the reports (for a trial)
/// hardly differ.
struct Plateau {
  static constexpr const char* type = "plateau";
  double tolerance = 1e-3;
  int last = 10;            ///< number of values: the best results of the best trials, or the last reports of a trial
  int patience = 0;         ///< under per_trial(): for so many further reports
  std::string metric = {};  ///< empty: the first objective

  static void describe(auto& self, auto&& option) {
    option("tolerance", self.tolerance, Bounds{}, "the standard deviation up to which values count as equal");
    option("last", self.last, Bounds{}, "how many of the best trials are compared");
    option("patience", self.patience, Bounds{}, "the number of further trials for which it must hold");
    option("metric", self.metric, "the metric that is looked at");
  }
};

/// Another trial is not worth its time: the gain expected of it, estimated from the last trials, is below a threshold.
struct ExpectedGain {
  static constexpr const char* type = "expected_gain";
  double threshold = 1e-4;  ///< above 0
  int last = 20;            ///< 2 or more
  std::string metric = {};  ///< empty: the first objective

  static void describe(auto& self, auto&& option) {
    option("threshold", self.threshold, Bounds{}, "the gain that another trial must promise, in units of the metric");
    option("last", self.last, Bounds{}, "trials that it is estimated from; not evaluated before this many have ended");
    option("metric", self.metric, "the metric that is looked at");
  }
};

namespace detail {

struct StopNode;
using StopTree = std::shared_ptr<const StopNode>;

}  // namespace detail

/// When to stop; empty (never) by default. Conditions are made by the functions below and combined by `|` (either
/// suffices) and `&` (both must hold; a value that was reached once counts as reached). An immutable value, cheap to
/// copy.
///
/// A condition is either on the experiment or on each trial. On the experiment are until(), at_least(), at_most(),
/// within(), total_steps(), failed_trials(), plateau(), expected_gain() and stop_if(): once the condition holds, the
/// experiment ends. Bounds on metrics are among these because one tunes to a target: the first trial that reaches it
/// ends the search. On each trial are steps() and stop_trial_if(): that trial ends and the others go on. per_trial()
/// turns a condition on the experiment into one on each trial.
/// ```cpp
/// .stop = ht::until("accuracy", 0.995) | ht::within(600) | ht::steps(50)  // target, 10 minutes; 50 steps per trial
/// .stop = ht::per_trial(ht::until("accuracy", 0.995) | ht::within(60))  // ends trials, never the experiment
/// .stop = ht::plateau({.tolerance = 1e-3, .last = 10}) & ht::total_steps(1000)  // both
/// ```
/// The YAML form `stop: {accuracy: 0.995, time: 10m}` is `until("accuracy", 0.995) | within(600)`.
class StopCondition {
 public:
  StopCondition() = default;

  bool empty() const { return !trial_ && !experiment_; }

  friend StopCondition operator|(const StopCondition& a, const StopCondition& b);
  /// Both sides must be on the experiment, or both on each trial; otherwise throws an Error of kind `usage`.
  friend StopCondition operator&(const StopCondition& a, const StopCondition& b);

  /// `.stop = at_most("loss", 0.1)`: holds once a trial's report is within the bound.
  StopCondition(const MetricBound& bound);  // NOLINT: a bound on a metric is a condition

  /// Gives a readable error where the compiler would only say that no tune() matches these options.
  template <class T>
    requires(!std::same_as<T, StopCondition> && !std::convertible_to<T, MetricBound>)
  StopCondition(const T&) {  // NOLINT
    static_assert(
        std::same_as<T, StopCondition>,
        "hypertune: this is no stop condition: write ht::steps(100), ht::within(3600), ht::total_steps(10000), "
        "ht::until(\"loss\", 0.1), …");
  }

  // For TrialStop and ExperimentStop.
  StopCondition(detail::StopTree trial, detail::StopTree experiment)
      : trial_(std::move(trial)), experiment_(std::move(experiment)) {}
  const detail::StopTree& trial() const { return trial_; }
  const detail::StopTree& experiment() const { return experiment_; }

 private:
  detail::StopTree trial_, experiment_;
};

/// Holds once a trial reports `metric` at `value` or better, in the sense of the objective of that name. For a metric
/// that is no objective use at_least() or at_most(). NaN and infinite reports are ignored.
StopCondition until(std::string metric, double value);
/// `metric` is `value` or more, whether it is an objective or not. In `.stop`: holds once a trial reports this. In
/// `.constraints`: trials should satisfy this.
MetricBound at_least(std::string metric, double value);
/// `metric` is `value` or less, whether it is an objective or not; otherwise like at_least().
MetricBound at_most(std::string metric, double value);
// For two bounds. A bound and a condition are joined by the condition's own operators.
StopCondition operator|(const MetricBound& a, const MetricBound& b);
StopCondition operator&(const MetricBound& a, const MetricBound& b);
/// Each trial ends after `n` steps (1 or more).
StopCondition steps(std::int64_t n);
/// The experiment has run for `seconds` (more than 0), in all its sessions together.
StopCondition within(Seconds seconds);
/// All trials together have done `n` steps (1 or more).
StopCondition total_steps(std::int64_t n);
/// `n` trials (1 or more) have failed for good.
StopCondition failed_trials(std::int64_t n);
/// The best values of the `last` best trials have a standard deviation of at most `tolerance`, and still have it after
/// `patience` further trials have ended. Checked when a trial that did not fail ends. Under per_trial(): the same for
/// the `last` reports of one trial.
StopCondition plateau(Plateau rule);
/// One more trial is expected to improve on the best result by less than `threshold`. The expectation is the larger of
/// two estimates: the improvement by the `last` trials together, divided by their number; and the lead of the best of
/// them over the second best, divided by their number (the leave-one-out estimate of what a trial adds to as many
/// others). Checked when a trial ends that did not fail and had a finite result.
StopCondition expected_gain(ExpectedGain rule);
/// A condition of your own on the experiment; `text` is the reason that users see. Called after each report, after the
/// end of each trial, and at time limits. It must depend on nothing but its argument, so that a resumed experiment
/// decides the same.
StopCondition stop_if(std::function<bool(const ExperimentProgressView&)> holds,
                      std::string text = "a stop condition of the program");
/// A condition of your own on each trial, called after each of its reports.
StopCondition stop_trial_if(std::function<bool(const TrialProgressView&)> holds,
                            std::string text = "a stop condition of the program");

/// The same condition, checked for each trial by itself: its metrics, its steps, its time. Throws an Error of kind
/// `usage` for conditions that have no meaning for one trial (failed_trials, expected_gain, stop_if).
StopCondition per_trial(const StopCondition& condition);

}  // namespace hypertune::inline v0
