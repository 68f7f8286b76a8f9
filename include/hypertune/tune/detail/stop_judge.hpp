// The evaluation of stop conditions after each event.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/tune/detail/stop_tree.hpp>
#include <hypertune/tune/stop.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

/// The state of a leaf.
struct StopMemory {
  bool reached = false;                       // metrics: never reset
  std::string reason;                         // why the condition holds
  std::vector<double> values;                 // plateau: best (ascending) or last losses; gain: last ones
  double before = worst_loss;                 // gain: the best loss before `values`
  int calm = 0;                               // plateau: checks in a row within the tolerance
  std::unordered_map<TrialId, double> bests;  // plateau or gain of an experiment: best loss of each running trial
};

/// A condition tree as a flat list: a node's children come before it.
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
  /// The reason why the tree holds, or empty. `reason(i)` is the reason why leaf i holds, empty if it does not.
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

/// Updates a metric's state by a report.
void note_value(StopMemory& memory, const StopAtValue& at, Mode mode, const TrialProgressView& report);

/// Updates an ExpectedGain: one more trial has ended, with `best` as its smallest loss.
void note_gain(StopMemory& memory, const ExpectedGain& rule, double best);

/// Checks a plateau once more, over memory.values.
void note_plateau(StopMemory& memory, const Plateau& rule);

}  // namespace detail

/// Checks the conditions on each trial. Not thread-safe. Its state is a function of the calls, so that a restart
/// rebuilds it by repeating them.
/// ```cpp
/// ht::TrialStop trial_stop(options.stop, objectives);  // once; Error of kind `usage` if a direction is unknown
/// auto why = trial_stop.check({.trial = t, .steps = 5, .metrics = report.metrics, .elapsed = 3.2});  // each report
/// trial_stop.forget(t);  // when the trial has ended
/// ```
class TrialStop {
 public:
  TrialStop() : TrialStop({}, {}) {}
  TrialStop(const StopCondition& condition, std::span<const Objective> objectives)
      : program_(condition.trial(), objectives), has_memory_(program_.has_memory()) {}

  bool empty() const { return program_.empty(); }

  /// To be called after each report that counts: one line why the trial is to end, or nullopt.
  std::optional<std::string> check(const TrialProgressView& report);

  /// The first time limit of a trial after `elapsed`. Trials are only checked at their reports.
  std::optional<Seconds> next_time(Seconds elapsed) const { return program_.next_time(elapsed); }

  void forget(TrialId trial) { memories_.erase(trial); }

 private:
  std::string judge(std::size_t i, std::vector<detail::StopMemory>* memories, const TrialProgressView& report) const;

  detail::StopProgram program_;
  bool has_memory_;
  std::unordered_map<TrialId, std::vector<detail::StopMemory>> memories_;  // of running trials
};

/// Checks the conditions on the whole experiment. Not thread-safe. Its state is a function of the calls.
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

  /// To be called after each report, after each end of a trial, and at next_time(): one line why the experiment is to
  /// end, or nullopt.
  std::optional<std::string> check(const ExperimentProgressView& now);

  /// The first time limit after `elapsed`: when to check again even if no event comes.
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
