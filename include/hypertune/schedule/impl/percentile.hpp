// Percentile: definitions.
#pragma once

#include <hypertune/schedule/detail/by_step.hpp>
#include <hypertune/schedule/detail/rung.hpp>
#include <hypertune/schedule/percentile.hpp>

#include <algorithm>
#include <unordered_map>

namespace hypertune::inline v0::detail {

struct PercentileState {
  std::unordered_map<TrialId, StepTrial> trials{};  ///< running
  ByStep bests{};
  RungVerdict verdict{};  ///< on the last trial that was stopped
};

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

Decision Percentile::on_report(const Progress& progress) {
  auto& state = state_.made();
  auto& trial = state.trials[progress.trial];
  trial.best = std::min(trial.best, detail::ranked_loss(progress.loss()));
  return state.bests.judge(trial, progress.steps, {grace_period, min_trials, max_steps}, trial.best, percentile / 100,
                           state.verdict);
}

void Percentile::on_end(TrialId trial, TrialState) {
  auto& state = state_.made();
  state.trials.erase(trial);
}

std::string Percentile::why(TrialId, const LossText& losses) const {
  const auto& state = state_.or_default();
  return detail::format("at step {}: best {} (the best {:g} % of {} others)", state.verdict.steps,
                        losses.against(state.verdict.loss, state.verdict.bar), percentile, state.verdict.trials);
}

}  // namespace hypertune::inline v0
