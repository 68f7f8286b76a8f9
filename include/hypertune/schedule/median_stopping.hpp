// MedianStopping: stops a trial that is worse than the median of the other trials at the same step.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/detail/parts.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <string>

namespace hypertune::inline v0 {

namespace detail {
struct MedianStoppingState;
}

/// The median stopping rule of Vizier (Golovin et al., KDD 2017): after step s a trial ends if its best loss so far is
/// worse than the median of the running averages, up to s, of the losses of the other trials that have reached s. NaN
/// and infinite losses are left out of an average; a trial with no other losses counts as the worst.
///
/// A trial whose reports skip steps counts at those steps with its average at the next report. A report costs O(log n)
/// for n trials; 8 bytes are kept per trial and step.
struct MedianStopping {
  static constexpr const char* type = "median";
  static constexpr const char& part = include_hypertune_src_schedulers_hpp_or_link_hypertune_hypertune;

  int grace_period = 1;  ///< steps that every trial gets, at least
  int min_trials = 3;    ///< other trials that must have reached a step before trials are stopped there
  int max_steps = 0;     ///< steps after which a trial is complete; 0: no limit

  static void describe(auto& self, auto&& option) {
    option("grace_period", self.grace_period, at_least(1), "steps that every trial gets, at least");
    option("min_trials", self.min_trials, at_least(1), "how many other trials must have reached a step");
    option("max_steps", self.max_steps, at_least(0), "steps after which a trial is complete; 0: no limit");
  }

  detail::Indirect<detail::MedianStoppingState> state_{};

  Decision on_report(const Progress& progress);
  void on_end(TrialId trial, TrialState);
  std::string why(TrialId, const LossText& losses) const;
};

}  // namespace hypertune::inline v0
