// SuccessiveHalving: the synchronous form of successive halving.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/detail/parts.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <string>

namespace hypertune::inline v0 {

namespace detail {
struct SuccessiveHalvingState;
}

/// Successive halving (Jamieson and Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter
/// Optimization", AISTATS 2016): all trials train to `grace_period` steps and wait for one another there; the best
/// 1/reduction_factor of them train to grace_period * reduction_factor, and so on to `max_steps` steps. Every
/// comparison is among all remaining trials, so that no trial passes only because it was early. The price is idle slots
/// at the end of each round. Asha does not wait.
///
/// `trials` is the size of a round; 0 makes one round of all samples. With more samples, rounds follow one another, and
/// slots that would be idle start trials of the next round. A failed trial makes room for the next best one. A NaN loss
/// is promoted only if no loss is finite.
struct SuccessiveHalving {
  static constexpr const char* type = "successive_halving";
  static constexpr const char& part = include_hypertune_src_schedulers_hpp_or_link_hypertune_hypertune;

  int grace_period = 1;      ///< steps of the first rung
  int max_steps = 81;        ///< steps after which a trial is complete
  int reduction_factor = 3;  ///< 2 or more: one in this many trials passes each rung
  int trials = 0;            ///< of a round; 0: all samples

  static void describe(auto& self, auto&& option) {
    option("grace_period", self.grace_period, at_least(1), "steps of the first round");
    option("max_steps", self.max_steps, at_least(1), "steps after which a trial is complete");
    option("reduction_factor", self.reduction_factor, at_least(2), "one in this many trials passes each rung");
    option("trials", self.trials, at_least(0), "of a round; 0: all samples");
  }
  void check() const;

  detail::Indirect<detail::SuccessiveHalvingState> state_{};

  void on_create(TrialId trial);
  Decision on_report(const Progress& progress);
  void on_resume(TrialId trial);
  void on_end(TrialId trial, TrialState);
  Choice choose_next(const Pool& pool) const;

  std::string why(TrialId trial, const LossText& losses) const;
};

}  // namespace hypertune::inline v0
