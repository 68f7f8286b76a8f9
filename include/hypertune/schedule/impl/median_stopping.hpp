// MedianStopping: definitions.
#pragma once

#include <hypertune/schedule/median_stopping.hpp>

#include <algorithm>
#include <cmath>

namespace hypertune::inline v0 {

Decision MedianStopping::on_report(const Progress& progress) {
  Trial& trial = trials_[progress.trial];
  const double loss = progress.loss();
  if (std::isfinite(loss)) {
    ++trial.finite;
    trial.mean += (loss - trial.mean) / static_cast<double>(trial.finite);
    trial.best = std::min(trial.best, loss);
  }
  return averages_.judge(trial, progress.steps, {grace_period, min_trials, max_steps},
                         trial.finite > 0 ? trial.mean : worst_loss, 0.5, verdict_);
}

}  // namespace hypertune::inline v0
