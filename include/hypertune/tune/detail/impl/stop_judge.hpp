// The evaluation of stop conditions: definitions.
#pragma once

#include <hypertune/tune/detail/stop_judge.hpp>

namespace hypertune::inline v0::detail {

bool StopProgram::has_memory() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [](const Node& node) {
    return node.kind == StopNode::Kind::leaf &&
           (std::holds_alternative<StopAtValue>(node.leaf) || std::holds_alternative<Plateau>(node.leaf));
  });
}

std::optional<Seconds> StopProgram::next_time(Seconds elapsed) const {
  std::optional<Seconds> next;
  for (const Node& node : nodes_)
    if (const auto* limit = std::get_if<StopAtTime>(&node.leaf); limit != nullptr && limit->seconds > elapsed)
      next = std::min(limit->seconds, next.value_or(limit->seconds));
  return next;
}

std::size_t StopProgram::add(const StopNode& tree, std::span<const Objective> objectives) {
  Node node{.kind = tree.kind, .leaf = tree.leaf, .children = {}};
  for (const auto& child : tree.children) node.children.push_back(add(*child, objectives));
  if (auto* at = std::get_if<StopAtValue>(&node.leaf)) {
    if (at->mode) {
      node.mode = *at->mode;
    } else if (const auto* objective = find(objectives, at->metric)) {
      node.mode = objective->mode;
    } else {
      fail(Errc::usage,
           "stop condition on '{}': it is no objective, so which direction is better is not known; say at_least() or "
           "at_most()",
           at->metric);
    }
  } else if (auto* rule = std::get_if<Plateau>(&node.leaf)) {
    if (rule->metric.empty()) {
      if (objectives.empty()) fail(Errc::usage, "stop condition plateau: name a metric, as there is no objective");
      rule->metric = objectives.front().metric;
    }
    if (const auto* objective = find(objectives, rule->metric)) {
      node.mode = objective->mode;
    } else {
      fail(Errc::usage, "stop condition plateau on '{}': it is no objective", rule->metric);
    }
  }
  if (auto* rule = std::get_if<ExpectedGain>(&node.leaf)) {
    if (rule->metric.empty() && !objectives.empty()) rule->metric = objectives.front().metric;
    const auto* objective = find(objectives, rule->metric);
    if (objective == nullptr)
      fail(Errc::usage, "stop condition expected_gain on '{}': it is no objective", rule->metric);
    node.mode = objective->mode;
  }
  nodes_.push_back(std::move(node));
  return nodes_.size() - 1;
}

const Objective* StopProgram::find(std::span<const Objective> objectives, std::string_view metric) {
  for (const auto& objective : objectives)
    if (objective.metric == metric) return &objective;
  return nullptr;
}

double stop_loss(const Metrics& metrics, const std::string& metric, Mode mode) {
  const double* value = find_metric(metrics, metric);
  if (value == nullptr || !std::isfinite(*value)) return worst_loss;
  return mode == Mode::minimize ? *value : -*value;
}

double standard_deviation(std::span<const double> values) {
  const double n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double sum = 0;
  for (const double x : values) sum += (x - mean) * (x - mean);
  return std::sqrt(sum / n);
}

void note_value(StopMemory& memory, const StopAtValue& at, Mode mode, const TrialProgressView& report) {
  const double* value = find_metric(report.metrics, at.metric);
  if (memory.reached || value == nullptr || !std::isfinite(*value)) return;
  if (mode == Mode::maximize ? *value < at.value : *value > at.value) return;
  memory.reached = true;
  memory.reason = detail::format("{} reached {} in trial {} (asked for {})", at.metric, *value, report.trial, at.value);
}

void note_gain(StopMemory& memory, const ExpectedGain& rule, double best) {
  const auto last = static_cast<std::size_t>(rule.last);
  memory.values.push_back(best);
  if (memory.values.size() > last) {
    memory.before = std::min(memory.before, memory.values.front());
    memory.values.erase(memory.values.begin());
  }
  memory.reached = false;
  if (memory.values.size() < last) return;
  double first = worst_loss, second = worst_loss;
  for (const double value : memory.values) {
    if (value < first)
      second = std::exchange(first, value);
    else
      second = std::min(second, value);
  }
  const double brought = std::isfinite(memory.before) ? std::max(0.0, memory.before - first) : 0;
  const double ahead = std::max(0.0, std::min(second, memory.before) - std::min(first, memory.before));
  const double gain = std::max(brought, ahead) / static_cast<double>(rule.last);
  memory.reached = gain < rule.threshold;
  if (memory.reached)
    memory.reason = detail::format("one more trial is expected to better {} by {:.3g} (asked for {})", rule.metric,
                                   gain, rule.threshold);
}

void note_plateau(StopMemory& memory, const Plateau& rule) {
  const bool full = memory.values.size() == static_cast<std::size_t>(rule.last);
  const bool calm = full && standard_deviation(memory.values) <= rule.tolerance;
  memory.calm = calm ? std::min(memory.calm + 1, std::numeric_limits<int>::max() - 1) : 0;
  memory.reached = memory.calm > rule.patience;
  if (!memory.reached) return;
  memory.reason = detail::format("{} is on a plateau: its last {} values differ by no more than {}", rule.metric,
                                 rule.last, rule.tolerance);
}

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

std::optional<std::string> TrialStop::check(const TrialProgressView& report) {
  if (program_.empty()) return std::nullopt;
  std::vector<detail::StopMemory>* memory = nullptr;
  if (has_memory_) {
    memory = &memories_[report.trial];
    memory->resize(program_.nodes().size());
  }
  std::string why = program_.verdict([&](std::size_t i) { return judge(i, memory, report); });
  if (why.empty()) return std::nullopt;
  return why;
}

std::string TrialStop::judge(std::size_t i, std::vector<detail::StopMemory>* memories,
                             const TrialProgressView& report) const {
  const auto& node = program_.nodes()[i];
  if (const auto* at = std::get_if<detail::StopAtSteps>(&node.leaf))
    return report.steps >= at->steps ? detail::format("{} steps done", report.steps) : "";
  if (const auto* at = std::get_if<detail::StopAtTime>(&node.leaf))
    return report.elapsed >= at->seconds ? detail::format("the trial's time of {} s is over", at->seconds) : "";
  if (const auto* own = std::get_if<detail::StopIfTrial>(&node.leaf)) return own->holds(report) ? own->text : "";
  if (const auto* at = std::get_if<detail::StopAtValue>(&node.leaf)) {
    auto& memory = (*memories)[i];
    detail::note_value(memory, *at, node.mode, report);
    return memory.reached ? memory.reason : "";
  }
  if (const auto* rule = std::get_if<Plateau>(&node.leaf)) {
    auto& memory = (*memories)[i];
    const double loss = detail::stop_loss(report.metrics, rule->metric, node.mode);
    if (!std::isfinite(loss)) {
      memory.values.clear();
    } else {
      if (memory.values.size() == static_cast<std::size_t>(rule->last)) memory.values.erase(memory.values.begin());
      memory.values.push_back(loss);
    }
    detail::note_plateau(memory, *rule);
    return memory.reached ? memory.reason : "";
  }
  return "";
}

std::optional<std::string> ExperimentStop::check(const ExperimentProgressView& now) {
  if (program_.empty()) return std::nullopt;
  std::string why = program_.verdict([&](std::size_t i) { return judge(i, now); });
  if (why.empty()) return std::nullopt;
  return why;
}

std::string ExperimentStop::judge(std::size_t i, const ExperimentProgressView& now) {
  const auto& node = program_.nodes()[i];
  auto& memory = memories_[i];
  if (const auto* at = std::get_if<detail::StopAtSteps>(&node.leaf))
    return now.total_steps >= at->steps ? detail::format("{} steps done by all trials", now.total_steps) : "";
  if (const auto* at = std::get_if<detail::StopAtTime>(&node.leaf))
    return now.elapsed >= at->seconds ? detail::format("the time of {} s is over", at->seconds) : "";
  if (const auto* at = std::get_if<detail::StopAtFailures>(&node.leaf))
    return now.failed >= at->trials ? detail::format("{} trials failed", now.failed) : "";
  if (const auto* own = std::get_if<detail::StopIfExperiment>(&node.leaf)) return own->holds(now) ? own->text : "";
  if (const auto* at = std::get_if<detail::StopAtValue>(&node.leaf)) {
    if (now.report != nullptr) detail::note_value(memory, *at, node.mode, *now.report);
    return memory.reached ? memory.reason : "";
  }
  if (const auto* rule = std::get_if<ExpectedGain>(&node.leaf)) {
    note_best(memory, rule->metric, node.mode, now);
    if (const auto best = best_of_ended(memory, now)) detail::note_gain(memory, *rule, *best);
    return memory.reached ? memory.reason : "";
  }
  if (const auto* rule = std::get_if<Plateau>(&node.leaf)) {
    note_best(memory, rule->metric, node.mode, now);
    if (now.ended >= 0) end_for_plateau(memory, *rule, now);
    return memory.reached ? memory.reason : "";
  }
  return "";
}

void ExperimentStop::note_best(detail::StopMemory& memory, const std::string& metric, Mode mode,
                               const ExperimentProgressView& now) {
  if (now.report == nullptr) return;
  double& best = memory.bests.try_emplace(now.report->trial, worst_loss).first->second;
  best = std::min(best, detail::stop_loss(now.report->metrics, metric, mode));
}

std::optional<double> ExperimentStop::best_of_ended(detail::StopMemory& memory, const ExperimentProgressView& now) {
  const auto found = memory.bests.find(now.ended);
  if (now.ended < 0 || found == memory.bests.end()) return std::nullopt;
  const double best = found->second;
  memory.bests.erase(found);
  if (now.ended_state == TrialState::failed || !std::isfinite(best)) return std::nullopt;
  return best;
}

void ExperimentStop::end_for_plateau(detail::StopMemory& memory, const Plateau& rule,
                                     const ExperimentProgressView& now) {
  const auto ended = best_of_ended(memory, now);
  if (!ended) return;
  const double best = *ended;
  memory.values.insert(std::upper_bound(memory.values.begin(), memory.values.end(), best), best);
  if (memory.values.size() > static_cast<std::size_t>(rule.last)) memory.values.pop_back();
  detail::note_plateau(memory, rule);
}

}  // namespace hypertune::inline v0
