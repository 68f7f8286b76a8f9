// ASHA: asynchronous successive halving, in its stopping and its promotion form.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <string>

namespace hypertune::inline v0 {

namespace detail {
struct AshaState;
}

/// Asynchronous successive halving (Li et al., "A System for Massively Parallel Hyperparameter Tuning", MLSys 2020).
/// Trials are compared at rungs of grace_period, grace_period * reduction_factor, grace_period * reduction_factor^2, …
/// steps; about one in `reduction_factor` passes each rung.
///
/// In the stopping form a trial ends at a rung unless it is among the best floor(n / reduction_factor) of the n trials
/// that have reached that rung so far, itself included; while n < reduction_factor every trial passes. In the promotion
/// form every trial pauses at its rung. A free slot resumes the best trial that is in the top 1/reduction_factor of its
/// rung and was not promoted yet, the highest rung first; a new trial starts only if there is none.
///
/// A trial whose reports skip rungs is compared at each rung that it passed. A loss of NaN or +infinity is never among
/// the best of a rung that has a finite one. With several `brackets`, bracket b begins at grace_period *
/// reduction_factor^b. Trials are distributed over the brackets by their numbers, in Hyperband's proportions. Brackets
/// beyond the number of rungs are ignored.
///
/// A report costs O(log n) for n trials at the rung; 8 bytes (promotion: up to 48) are kept per trial and rung.
struct Asha {
  static constexpr const char* type = "asha";

  int grace_period = 1;      ///< steps of the first rung
  int max_steps = 81;        ///< steps after which a trial is complete
  int reduction_factor = 3;  ///< 2 or more: one in this many trials passes each rung
  int brackets = 1;          ///< ladders with a later and later first rung
  bool promotion = false;    ///< the promotion form, else the stopping form

  static void describe(auto& self, auto&& option) {
    option("grace_period", self.grace_period, at_least(1), "steps that every trial gets, at least");
    option("max_steps", self.max_steps, at_least(1), "steps after which a trial is complete");
    option("reduction_factor", self.reduction_factor, at_least(2), "one in this many trials passes each rung");
    option("brackets", self.brackets, at_least(1), "ladders with a later and later first rung");
    option("promotion", self.promotion, "trials pause at rungs, the best are resumed; else the bad ones stop");
  }
  void check() const;

  detail::Indirect<detail::AshaState> state_{};

  Decision on_report(const Progress& progress);
  void on_resume(TrialId trial);
  void on_end(TrialId trial, TrialState);
  Choice choose_next(const Pool& pool);
  std::string why(TrialId trial, const LossText& losses) const;
  std::string name() const;
};

}  // namespace hypertune::inline v0
