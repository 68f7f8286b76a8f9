// The judges of stop conditions: what the Tuner asks after each event.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/linkage.hpp>
#include <hypertune/tune/stop.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

/// What a leaf has to remember.
struct StopMemory {
  bool reached = false;                       // metrics: stays so
  std::string reason;                         // why it holds
  std::vector<double> values;                 // plateau: the best losses (ascending), or the last ones; gain: the last
  double before = worst_loss;                 // gain: the best loss before those
  int calm = 0;                               // plateau: judgements in a row within the tolerance
  std::unordered_map<TrialId, double> bests;  // plateau or gain of an experiment: of trials under way
};

/// A tree laid out flat: a node's children come before it.
class StopProgram {
 public:
  struct Node {
    StopNode::Kind kind;
    StopLeaf leaf;
    Mode mode = Mode::minimize;  // of a leaf's metric
    std::vector<std::size_t> children;
  };

  StopProgram(const StopTree& tree, std::span<const Objective> objectives) {
    if (tree) add(*tree, objectives);
  }

  const std::vector<Node>& nodes() const { return nodes_; }
  bool empty() const { return nodes_.empty(); }
  bool has_memory() const;
  /// The reason why the tree holds, given which leaves do: `reason(i)` is empty where leaf i does not.
  template <class Reason>
  std::string verdict(Reason&& reason) const {
    std::vector<std::string> reasons(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const Node& node = nodes_[i];
      if (node.kind == StopNode::Kind::leaf) {
        reasons[i] = reason(i);
      } else if (node.kind == StopNode::Kind::any) {
        for (const std::size_t child : node.children)
          if (reasons[i].empty()) reasons[i] = reasons[child];
      } else if (std::none_of(node.children.begin(), node.children.end(),
                              [&](std::size_t child) { return reasons[child].empty(); })) {
        for (const std::size_t child : node.children)
          reasons[i] += (reasons[i].empty() ? "" : " and ") + reasons[child];
      }
    }
    return reasons.back();
  }
  /// The first time limit after `elapsed`.
  std::optional<Seconds> next_time(Seconds elapsed) const;

 private:
  std::size_t add(const StopNode& tree, std::span<const Objective> objectives);
  static const Objective* find(std::span<const Objective> objectives, std::string_view metric);

  std::vector<Node> nodes_;
};

double stop_loss(const Metrics& metrics, const std::string& metric, Mode mode);

double standard_deviation(std::span<const double> values);

/// Takes a report into a metric's memory.
void note_value(StopMemory& memory, const StopAtValue& at, Mode mode, const TrialProgressView& report);

/// One more trial has ended, with `best` as its smallest loss.
void note_gain(StopMemory& memory, const ExpectedGain& rule, double best);

/// One more judgement of a plateau over memory.values.
void note_plateau(StopMemory& memory, const Plateau& rule);

}  // namespace detail

/// Judges the conditions on each trial. Single-threaded; its state is a function of the calls, so that a restart
/// rebuilds it by making them again.
/// ```cpp
/// ht::TrialStop trial_stop(options.stop, objectives);         // once; Error of kind `usage` if a direction is unknown
/// if (auto why = trial_stop.check({.trial = t, .steps = 5, .metrics = report.metrics, .elapsed = 3.2})) …  // each
/// report trial_stop.forget(t);                                       // when the trial has ended
/// ```
class TrialStop {
 public:
  TrialStop() : TrialStop({}, {}) {}
  TrialStop(const StopCondition& condition, std::span<const Objective> objectives)
      : program_(condition.trial(), objectives), has_memory_(program_.has_memory()) {}

  bool empty() const { return program_.empty(); }

  /// After each counted report: one line why the trial has done enough, or nullopt.
  std::optional<std::string> check(const TrialProgressView& report);

  /// The first time limit of a trial after `elapsed`. Trials are judged at their reports.
  std::optional<Seconds> next_time(Seconds elapsed) const { return program_.next_time(elapsed); }

  void forget(TrialId trial) { memories_.erase(trial); }

 private:
  std::string judge(std::size_t i, std::vector<detail::StopMemory>* memories, const TrialProgressView& report) const;

  detail::StopProgram program_;
  bool has_memory_;
  std::unordered_map<TrialId, std::vector<detail::StopMemory>> memories_;  // of trials under way
};

/// Judges the conditions on the whole experiment. Single-threaded; its state is a function of the calls.
/// ```cpp
/// ht::ExperimentStop stop(options.stop, objectives);
/// ht::ExperimentProgressView now{.total_steps = …, .failed = …, .elapsed = …};
/// now.report = &report;  stop.check(now);                                    // after each counted report
/// now.ended = t; now.ended_state = TrialState::completed;  stop.check(now);  // after the end of each trial
/// stop.check(now);                                                           // when stop.next_time(elapsed) has come
/// ```
class ExperimentStop {
 public:
  ExperimentStop() : ExperimentStop({}, {}) {}
  ExperimentStop(const StopCondition& condition, std::span<const Objective> objectives)
      : program_(condition.experiment(), objectives), memories_(program_.nodes().size()) {}

  bool empty() const { return program_.empty(); }

  /// After each report, each end of a trial, and when time has passed: one line why the experiment has done enough, or
  /// nullopt.
  std::optional<std::string> check(const ExperimentProgressView& now);

  /// The first time limit after `elapsed`: when to check again though nothing happens.
  std::optional<Seconds> next_time(Seconds elapsed) const { return program_.next_time(elapsed); }

 private:
  std::string judge(std::size_t i, const ExperimentProgressView& now);

  static void note_best(detail::StopMemory& memory, const std::string& metric, Mode mode,
                        const ExperimentProgressView& now);
  /// The best of the trial that has just ended, if it did not fail.
  static std::optional<double> best_of_ended(detail::StopMemory& memory, const ExperimentProgressView& now);
  static void end_for_plateau(detail::StopMemory& memory, const Plateau& rule, const ExperimentProgressView& now);

  detail::StopProgram program_;
  std::vector<detail::StopMemory> memories_;
};

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/tune/impl/stop_judge.hpp>
#endif
