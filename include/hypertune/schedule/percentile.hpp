// Percentile: stops a trial that is not among the best part of the trials at the same step.
#pragma once

#include <hypertune/schedule/by_step.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <string>
#include <unordered_map>

namespace hypertune::inline v0 {

/// After step s a trial ends if its best loss so far is worse than the `percentile` percentile of the best losses, up
/// to s, of the other trials that have reached s. Unlike Asha it compares at every step, so that a small `percentile`
/// leaves few trials.
struct Percentile {
  static constexpr const char* type = "percentile";

  double percentile = 50;  ///< above 0 and below 100: percent of the trials that may go on
  int grace_period = 1;    ///< steps that every trial gets, at least
  int min_trials = 3;      ///< other trials that must have reached a step before trials are stopped there
  int max_steps = 0;       ///< steps after which a trial is complete; 0: no limit

  static void describe(auto& self, auto&& option) {
    option("percentile", self.percentile, above(0).below(100), "percent of the trials that may go on");
    option("grace_period", self.grace_period, at_least(1), "steps that every trial gets, at least");
    option("min_trials", self.min_trials, at_least(1), "how many other trials must have reached a step");
    option("max_steps", self.max_steps, at_least(0), "steps after which a trial is complete; 0: no limit");
  }

  std::unordered_map<TrialId, detail::StepTrial> trials_{};  ///< running
  detail::ByStep bests_{};
  detail::RungVerdict verdict_{};  ///< on the last trial that was stopped

  Decision on_report(const Progress& progress);
  void on_end(TrialId trial, TrialState) { trials_.erase(trial); }
  std::string why(TrialId, const LossText& losses) const {
    return detail::format("at step {}: best {} (the best {:g} % of {} others)", verdict_.steps,
                          losses.against(verdict_.loss, verdict_.bar), percentile, verdict_.trials);
  }
};

}  // namespace hypertune::inline v0
