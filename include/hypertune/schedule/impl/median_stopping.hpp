// MedianStopping: definitions.
#pragma once

#include <hypertune/schedule/detail/by_step.hpp>
#include <hypertune/schedule/median_stopping.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <unordered_map>

namespace hypertune::inline v0::detail {

struct MedianStoppingState {
  struct Trial : StepTrial {
    std::int64_t finite = 0;  // losses in the mean
    double mean = 0;
  };
  std::unordered_map<TrialId, Trial> trials{};  ///< running
  ByStep averages{};
  RungVerdict verdict{};  ///< on the last trial that was stopped
};

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

Decision MedianStopping::on_report(const Progress& progress) {
  auto& state = state_.made();
  auto& trial = state.trials[progress.trial];
  const double loss = progress.loss();
  if (std::isfinite(loss)) {
    ++trial.finite;
    trial.mean += (loss - trial.mean) / static_cast<double>(trial.finite);
    trial.best = std::min(trial.best, loss);
  }
  return state.averages.judge(trial, progress.steps, {grace_period, min_trials, max_steps},
                              trial.finite > 0 ? trial.mean : worst_loss, 0.5, state.verdict);
}

void MedianStopping::on_end(TrialId trial, TrialState) {
  auto& state = state_.made();
  state.trials.erase(trial);
}

std::string MedianStopping::why(TrialId, const LossText& losses) const {
  const auto& state = state_.or_default();
  return detail::format("at step {}: best {} (the median of {} others)", state.verdict.steps,
                        losses.against(state.verdict.loss, state.verdict.bar), state.verdict.trials);
}

}  // namespace hypertune::inline v0
