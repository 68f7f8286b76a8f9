// Patience: stops a trial that no longer improves (early stopping per trial).
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/detail/parts.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <string>

namespace hypertune::inline v0 {

namespace detail {
struct PatienceState;
}

/// Ends a trial if its loss has not fallen by more than `min_delta` below its best for `patience` steps. Trials are not
/// compared with each other.
struct Patience {
  static constexpr const char* type = "patience";
  static constexpr const char& part = include_hypertune_src_schedulers_hpp_or_link_hypertune_hypertune;

  int patience = 10;     ///< steps without an improvement after which a trial ends
  double min_delta = 0;  ///< by how much the loss must fall to be one, in units of the metric; 0 or more
  int grace_period = 1;  ///< steps that every trial gets, at least
  int max_steps = 0;     ///< steps after which a trial is complete; 0: no limit

  static void describe(auto& self, auto&& option) {
    option("patience", self.patience, at_least(1), "steps without an improvement");
    option("min_delta", self.min_delta, at_least(0), "what counts as an improvement, in units of the metric");
    option("grace_period", self.grace_period, at_least(1), "steps that every trial gets, at least");
    option("max_steps", self.max_steps, at_least(0), "steps after which a trial is complete; 0: no limit");
  }

  detail::Indirect<detail::PatienceState> state_{};

  Decision on_report(const Progress& progress);
  void on_end(TrialId trial, TrialState);
  std::string why(TrialId id, const LossText& losses) const;
};

}  // namespace hypertune::inline v0
