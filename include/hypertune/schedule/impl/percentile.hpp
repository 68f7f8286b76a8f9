// Percentile: definitions.
#pragma once

#include <hypertune/schedule/percentile.hpp>

#include <algorithm>

namespace hypertune::inline v0 {

Decision Percentile::on_report(const Progress& progress) {
  detail::StepTrial& trial = trials_[progress.trial];
  trial.best = std::min(trial.best, detail::ranked_loss(progress.loss()));
  return bests_.judge(trial, progress.steps, {grace_period, min_trials, max_steps}, trial.best, percentile / 100,
                      verdict_);
}

}  // namespace hypertune::inline v0
