// Patience: definitions.
#pragma once

#include <hypertune/schedule/patience.hpp>

#include <unordered_map>

namespace hypertune::inline v0::detail {

struct PatienceState {
  struct Trial {
    int best_steps = 0;
    double best = worst_loss;
  };
  std::unordered_map<TrialId, Trial> trials{};  ///< running
};

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

Decision Patience::on_report(const Progress& progress) {
  auto& state = state_.made();
  auto& trial = state.trials[progress.trial];
  if (progress.loss() < trial.best - min_delta) {
    trial.best = progress.loss();
    trial.best_steps = progress.steps;
  }
  if (max_steps > 0 && progress.steps >= max_steps) return Decision::complete;
  const bool stuck = progress.steps - trial.best_steps >= patience;
  return stuck && progress.steps >= grace_period ? Decision::stop : Decision::proceed;
}

std::string Patience::why(TrialId id, const LossText& losses) const {
  const auto& state = state_.or_default();
  const auto found = state.trials.find(id);
  if (found == state.trials.end()) return {};
  const auto& trial = found->second;
  if (trial.best == worst_loss) return detail::format("after {} steps without a finite {}", patience, losses.name());
  return detail::format("after {} steps without an improvement{}: best {} after {} step{}", patience,
                        min_delta > 0 ? detail::format(" by more than {:g}", min_delta) : "", losses.named(trial.best),
                        trial.best_steps, trial.best_steps == 1 ? "" : "s");
}

void Patience::on_end(TrialId trial, TrialState) {
  auto& state = state_.made();
  state.trials.erase(trial);
}

}  // namespace hypertune::inline v0
