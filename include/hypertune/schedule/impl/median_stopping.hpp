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
  Decision decision = Decision::proceed;
  if (progress.steps >= grace_period) {
    if (averages_.beyond(progress.steps, trial.best, min_trials)) {
      decision = Decision::stop;
      verdict_ = {.steps = progress.steps,
                  .loss = trial.best,
                  .bar = *averages_.quantile(progress.steps),
                  .trials = averages_.trials(progress.steps)};
    }
    if (progress.steps > trial.steps)
      averages_.add(std::max(trial.steps, grace_period - 1), progress.steps, trial.finite > 0 ? trial.mean : worst_loss,
                    0.5);
  }
  trial.steps = std::max(trial.steps, progress.steps);
  return max_steps > 0 && progress.steps >= max_steps ? Decision::complete : decision;
}

}  // namespace hypertune::inline v0
