// Percentile: stops a trial that is not among the best part of the trials at the same step.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/detail/parts.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <string>

namespace hypertune::inline v0 {

namespace detail {
struct PercentileState;
}

/// After step s a trial ends if its best loss so far is worse than the `percentile` percentile of the best losses, up
/// to s, of the other trials that have reached s. Unlike Asha it compares at every step, so that a small `percentile`
/// leaves few trials.
struct Percentile {
  static constexpr const char* type = "percentile";
  static constexpr const char& part = include_hypertune_src_schedulers_hpp_or_link_hypertune_hypertune;

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

  detail::Indirect<detail::PercentileState> state_{};

  Decision on_report(const Progress& progress);
  void on_end(TrialId trial, TrialState);
  std::string why(TrialId, const LossText& losses) const;
};

}  // namespace hypertune::inline v0
