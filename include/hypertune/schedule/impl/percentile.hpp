// Percentile: definitions.
#pragma once

#include <hypertune/schedule/percentile.hpp>

#include <algorithm>

namespace hypertune::inline v0 {

Decision Percentile::on_report(const Progress& progress) {
  Trial& trial = trials_[progress.trial];
  trial.best = std::min(trial.best, detail::ranked_loss(progress.loss()));
  Decision decision = Decision::proceed;
  if (progress.steps >= grace_period) {
    if (bests_.beyond(progress.steps, trial.best, min_trials)) {
      decision = Decision::stop;
      verdict_ = {.steps = progress.steps,
                  .loss = trial.best,
                  .bar = *bests_.quantile(progress.steps),
                  .trials = bests_.trials(progress.steps)};
    }
    if (progress.steps > trial.steps)
      bests_.add(std::max(trial.steps, grace_period - 1), progress.steps, trial.best, percentile / 100);
  }
  trial.steps = std::max(trial.steps, progress.steps);
  return max_steps > 0 && progress.steps >= max_steps ? Decision::complete : decision;
}

}  // namespace hypertune::inline v0
