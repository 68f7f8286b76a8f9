// A trial as stored in Results: a few hundred bytes, however much it reports.
#pragma once

#include <hypertune/record/detail/failure_counts.hpp>
#include <hypertune/record/detail/feasibility.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/record/trial_result.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

/// One metric of one trial: the last value, and the best ones in both directions.
struct MetricData {
  std::uint32_t name = 0;  // index into Results' names
  std::int32_t last_step = -1, min_step = -1, max_step = -1;
  double last = 0;
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();

  double violation = std::numeric_limits<double>::infinity();  // of the constraints, in the best reports

  /// Only reports with the smallest violation of the constraints can be the best of a metric.
  void add(int step, double value, double report_violation) {
    last_step = step;
    last = value;
    if (!std::isfinite(value) || (has_best() && report_violation > violation)) return;
    if (report_violation < violation) {
      min_step = max_step = -1;
      min = std::numeric_limits<double>::infinity();
      max = -min;
    }
    violation = report_violation;
    if (value < min) {
      min = value;
      min_step = step;
    }
    if (value > max) {
      max = value;
      max_step = step;
    }
  }
  bool has_best() const { return min_step >= 0; }
  double best(Mode mode) const { return mode == Mode::minimize ? min : max; }
  int best_step(Mode mode) const { return mode == Mode::minimize ? min_step : max_step; }
};

/// A configuration in the line of configurations that led to a trial's state. Lines with a common past share it.
struct LineNode {
  LineNode(int from_step, TrialId by, std::string with, std::shared_ptr<const LineNode> before)
      : from(from_step), trial(by), configuration(std::move(with)), parent(std::move(before)) {}
  LineNode(const LineNode&) = delete;
  LineNode& operator=(const LineNode&) = delete;
  ~LineNode() {  // iteratively: a long line must not cause deep recursion
    for (auto next = std::move(parent); next && next.use_count() == 1;)
      next = std::move(const_cast<LineNode&>(*next).parent);
  }
  int from;  // the first step for which it was used
  TrialId trial;
  std::string configuration;
  std::shared_ptr<const LineNode> parent;
};

/// The lines that led to a trial's best report and to its checkpoints, if it has taken over another state since.
struct FormerLines {
  struct Best {
    std::shared_ptr<const LineNode> line;
    double value;
    int step;
  };
  struct Saved {
    std::string checkpoint;
    std::shared_ptr<const LineNode> line;
  };
  std::optional<Best> best;  // of the best report
  std::vector<Saved> saved;  // of the checkpoints that others may take over

  std::shared_ptr<const LineNode> of(const std::string& checkpoint) const {
    for (const auto& each : saved)
      if (each.checkpoint == checkpoint) return each.line;
    return nullptr;
  }
};

struct TrialData : FailureCounts {
  TrialId id = -1;
  std::int64_t first_record = 0, last_record = 0;
  Seconds created = 0;
  Seconds started = std::numeric_limits<Seconds>::quiet_NaN(), ended = std::numeric_limits<Seconds>::quiet_NaN();
  // In the experiment's own time, without the time between drivers: when it first started, and from there to its end.
  Seconds started_after = 0, duration = std::numeric_limits<Seconds>::quiet_NaN();
  std::int32_t steps = 0, attempts = 0;
  TrialState state = TrialState::pending;
  bool known = false;
  std::string configuration;  // Encoder::put(Point, Params): a third of the size
  std::string checkpoints;    // Encoder::put(CheckpointInfo), one after the other
  std::shared_ptr<const Cause> cause;
  std::shared_ptr<const LineNode> line;  // null until it takes over a state, or another trial takes over its state
  std::shared_ptr<const FormerLines> former;
  std::vector<MetricData> metrics;
  std::vector<double> excesses;  // of the constraints, as last known; empty without constraints

  const MetricData* metric(std::uint32_t name) const {
    for (const auto& metric : metrics)
      if (metric.name == name) return &metric;
    return nullptr;
  }

  /// By the best report of a metric. The worst rank if the trial has failed or has no finite value of it.
  ResultRank rank(std::uint32_t name, Mode mode) const {
    const auto* of = state == TrialState::failed ? nullptr : metric(name);
    if (of == nullptr || !of->has_best()) return {};
    return {of->violation, mode == Mode::minimize ? of->min : -of->max};
  }

  void report(int step, std::uint32_t name, double value, double violation) {
    for (auto& metric : metrics)
      if (metric.name == name) return metric.add(step, value, violation);
    metrics.reserve(metrics.size() + 1);  // not more: there are many trials, and a trial's metrics seldom change
    metrics.emplace_back().name = name;
    metrics.back().add(step, value, violation);
  }

  std::vector<CheckpointInfo> kept() const;
  void keep(const std::vector<CheckpointInfo>& list);
};

}  // namespace hypertune::inline v0::detail
