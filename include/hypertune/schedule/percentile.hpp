// Percentile: a trial that is not among the best part of those that came to the same step ends.
#pragma once

#include <hypertune/schedule/by_step.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <algorithm>
#include <string>
#include <unordered_map>

namespace hypertune {

/// After step s a trial ends if its best loss so far is worse than the `percentile` percentile of the bests, up to s,
/// of the other trials that have come to s. Unlike Asha it judges at every step, so that a small `percentile` leaves
/// few trials.
struct Percentile {
  static constexpr const char* type = "percentile";

  double percentile = 50;
  int grace_period = 1;
  int min_trials = 3;
  int max_steps = 0;

  static void describe(auto& self, auto&& option) {
    option("percentile", self.percentile, above(0).below(100), "percent of the trials that may go on");
    option("grace_period", self.grace_period, at_least(1), "steps that every trial gets, at least");
    option("min_trials", self.min_trials, at_least(1), "others that there must be at a step");
    option("max_steps", self.max_steps, at_least(0), "steps after which a trial is complete; 0: no limit");
  }

  struct Trial {
    int steps = 0;
    double best = worst_loss;
  };
  std::unordered_map<TrialId, Trial> trials_{};  ///< under way
  detail::ByStep bests_{};
  detail::RungVerdict verdict_{};  ///< on the last trial that was stopped

  Decision on_report(const Progress& progress) {
    Trial& trial = trials_[progress.trial];
    trial.best = std::min(trial.best, detail::ranked_loss(progress.loss()));
    Decision decision = Decision::go_on;
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
  void on_end(TrialId trial, TrialState) { trials_.erase(trial); }
  std::string why(TrialId, const LossText& losses) const {
    return detail::format("at step {}: best {} (the best {:g} % of {} others)", verdict_.steps,
                          losses.against(verdict_.loss, verdict_.bar), percentile, verdict_.trials);
  }
};

}  // namespace hypertune
