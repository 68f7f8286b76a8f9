// Stop conditions: definitions.
#pragma once

#include <hypertune/tune/stop.hpp>

namespace hypertune::inline v0::detail {

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

}  // namespace hypertune::inline v0
