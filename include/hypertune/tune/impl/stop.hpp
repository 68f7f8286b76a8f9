// Stop conditions: definitions.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/tune/detail/stop_tree.hpp>
#include <hypertune/tune/stop.hpp>

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace hypertune::inline v0::detail {

StopTree stop_leaf(StopLeaf leaf) { return std::make_shared<StopNode>(StopNode{.leaf = std::move(leaf)}); }

StopTree join(StopNode::Kind kind, StopTree a, StopTree b) {
  if (!a) return b;
  if (!b) return a;
  return std::make_shared<StopNode>(StopNode{.kind = kind, .children = {std::move(a), std::move(b)}});
}

StopTree move_to_trials(const StopTree& tree) {
  if (!tree) return nullptr;
  if (std::holds_alternative<StopAtFailures>(tree->leaf))
    fail(Errc::usage, "stop condition: per_trial(failed_trials(…)) means nothing: a trial fails only once");
  if (std::holds_alternative<ExpectedGain>(tree->leaf))
    fail(Errc::usage, "stop condition: per_trial(expected_gain(…)) means nothing: it is about further trials");
  if (std::holds_alternative<StopIfExperiment>(tree->leaf))
    fail(Errc::usage, "stop condition: per_trial(stop_if(…)) cannot be judged on a trial: use stop_trial_if(…)");
  auto copy = std::make_shared<StopNode>(*tree);
  for (auto& child : copy->children) child = move_to_trials(child);
  return copy;
}

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

StopCondition operator|(const StopCondition& a, const StopCondition& b) {
  return {detail::join(detail::StopNode::Kind::any, a.trial_, b.trial_),
          detail::join(detail::StopNode::Kind::any, a.experiment_, b.experiment_)};
}

StopCondition operator&(const StopCondition& a, const StopCondition& b) {
  if ((a.trial_ || b.trial_) && (a.experiment_ || b.experiment_))
    fail(Errc::usage,
         "stop conditions: & joins a condition on each trial with one on the whole experiment; move the latter to the "
         "trials by per_trial(…), or use |");
  return {detail::join(detail::StopNode::Kind::all, a.trial_, b.trial_),
          detail::join(detail::StopNode::Kind::all, a.experiment_, b.experiment_)};
}

StopCondition operator|(const MetricBound& a, const MetricBound& b) { return StopCondition(a) | StopCondition(b); }

StopCondition operator&(const MetricBound& a, const MetricBound& b) { return StopCondition(a) & StopCondition(b); }

StopCondition::StopCondition(const MetricBound& bound)
    : experiment_(detail::stop_leaf(detail::StopAtValue{bound.metric, bound.value, bound.side})) {}

StopCondition plateau(Plateau rule) {
  if (rule.last < 2) fail(Errc::usage, "stop condition: plateau.last is {}, but must be at least 2", rule.last);
  if (!(rule.tolerance >= 0))
    fail(Errc::usage, "stop condition: plateau.tolerance is {}, but must not be below 0", rule.tolerance);
  if (rule.patience < 0)
    fail(Errc::usage, "stop condition: plateau.patience is {}, but must not be below 0", rule.patience);
  return {nullptr, detail::stop_leaf(std::move(rule))};
}

StopCondition expected_gain(ExpectedGain rule) {
  if (rule.last < 2) fail(Errc::usage, "stop condition: expected_gain.last is {}, but must be at least 2", rule.last);
  if (!(rule.threshold > 0))
    fail(Errc::usage, "stop condition: expected_gain.threshold is {}, but must be above 0", rule.threshold);
  return {nullptr, detail::stop_leaf(std::move(rule))};
}

StopCondition until(std::string metric, double value) {
  if (!std::isfinite(value)) fail(Errc::usage, "stop condition: '{}' can never reach {}", metric, value);
  return {nullptr, detail::stop_leaf(detail::StopAtValue{std::move(metric), value, std::nullopt})};
}

MetricBound at_least(std::string metric, double value) {
  if (!std::isfinite(value)) fail(Errc::usage, "bound on '{}': no value can be judged by {}", metric, value);
  return {std::move(metric), Mode::maximize, value};
}

MetricBound at_most(std::string metric, double value) {
  if (!std::isfinite(value)) fail(Errc::usage, "bound on '{}': no value can be judged by {}", metric, value);
  return {std::move(metric), Mode::minimize, value};
}

StopCondition steps(std::int64_t n) {
  if (n < 1) fail(Errc::usage, "stop condition: steps is {}, but must be at least 1", n);
  return {detail::stop_leaf(detail::StopAtSteps{n}), nullptr};
}

StopCondition within(Seconds seconds) {
  if (!(seconds > 0)) fail(Errc::usage, "stop condition: time is {} s, but must be above 0", seconds);
  return {nullptr, detail::stop_leaf(detail::StopAtTime{seconds})};
}

StopCondition total_steps(std::int64_t n) {
  if (n < 1) fail(Errc::usage, "stop condition: total_steps is {}, but must be at least 1", n);
  return {nullptr, detail::stop_leaf(detail::StopAtSteps{n})};
}

StopCondition failed_trials(std::int64_t n) {
  if (n < 1) fail(Errc::usage, "stop condition: failed_trials is {}, but must be at least 1", n);
  return {nullptr, detail::stop_leaf(detail::StopAtFailures{n})};
}

StopCondition stop_if(std::function<bool(const ExperimentProgressView&)> holds, std::string text) {
  if (!holds) fail(Errc::usage, "stop condition: stop_if() was given an empty function");
  return {nullptr, detail::stop_leaf(detail::StopIfExperiment{std::move(holds), std::move(text)})};
}

StopCondition stop_trial_if(std::function<bool(const TrialProgressView&)> holds, std::string text) {
  if (!holds) fail(Errc::usage, "stop condition: stop_trial_if() was given an empty function");
  return {detail::stop_leaf(detail::StopIfTrial{std::move(holds), std::move(text)}), nullptr};
}

StopCondition per_trial(const StopCondition& condition) {
  return {detail::join(detail::StopNode::Kind::any, condition.trial(), detail::move_to_trials(condition.experiment())),
          nullptr};
}

}  // namespace hypertune::inline v0
