// Percentile: a trial that is not among the best part of those that came to the same step ends.
#pragma once

#include <hypertune/schedule/by_step.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <algorithm>
#include <string>
#include <unordered_map>

namespace hypertune {

/// After step s a trial ends if its best loss so far is worse than the `keep` percentile of the bests, up to s, of the
/// other trials that have come to s. Unlike Asha it judges at every step, so that a small `keep` leaves few trials.
struct Percentile {
  double keep = 50;    ///< percent of the trials that may go on; above 0, below 100
  int grace = 1;       ///< steps that every trial gets, at least
  int min_trials = 3;  ///< other trials there must be at a step before a trial ends there
  int max = 0;         ///< steps after which a trial is complete; 0: when it ends by itself

  struct Trial {
    int steps = 0;
    double best = worst_loss;
  };
  std::unordered_map<TrialId, Trial> trials_{};  ///< under way
  detail::ByStep bests_{};
  detail::RungVerdict verdict_{};  ///< on the last trial that was stopped

  void check() const {
    if (!(keep > 0 && keep < 100)) fail(Errc::usage, "percentile: keep is {}, but must lie between 0 and 100", keep);
    detail::check_step_rule("percentile", grace, min_trials, max);
  }
  Decision on_report(const Progress& progress) {
    Trial& trial = trials_[progress.trial];
    trial.best = std::min(trial.best, detail::ranked_loss(progress.loss()));
    Decision decision = Decision::go_on;
    if (progress.steps >= grace) {
      if (bests_.beyond(progress.steps, trial.best, min_trials)) {
        decision = Decision::stop;
        verdict_ = {.steps = progress.steps,
                    .loss = trial.best,
                    .bar = *bests_.quantile(progress.steps),
                    .trials = bests_.trials(progress.steps)};
      }
      if (progress.steps > trial.steps)
        bests_.add(std::max(trial.steps, grace - 1), progress.steps, trial.best, keep / 100);
    }
    trial.steps = std::max(trial.steps, progress.steps);
    return max > 0 && progress.steps >= max ? Decision::complete : decision;
  }
  void on_end(TrialId trial, TrialState) { trials_.erase(trial); }
  int max_steps() const { return max; }
  std::string name() const { return "percentile"; }
  std::string why(TrialId, const LossText& losses) const {
    return detail::format("at step {}: best {} (the best {:g} % of {} others)", verdict_.steps,
                          losses.against(verdict_.loss, verdict_.bar), keep, verdict_.trials);
  }
};

}  // namespace hypertune
