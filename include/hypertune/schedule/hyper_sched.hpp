// HyperSched: the best model by a deadline.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/detail/parts.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <string>

namespace hypertune::inline v0 {

namespace detail {
struct HyperSchedState;
}

/// HyperSched (Liaw et al., "HyperSched: Dynamic Resource Reallocation for Model Development on a Deadline", SoCC
/// 2019) finds the best model within `deadline` seconds. Trials pause at rungs of grace_period, grace_period *
/// reduction_factor, … steps. A free slot resumes a trial among the best 1/reduction_factor of a rung, else starts a
/// new one (exploration). A new trial starts only while it could still make as many steps as the best one before the
/// deadline, judged by the mean time of a step so far. After that, free slots go to the best paused trials of any rung
/// (exploitation), so that near the deadline only the best ones train. At the deadline every trial ends at its next
/// report, as complete, so that it can continue under a later deadline.
///
/// Time is the experiment's own, summed over its sessions and taken from the record, so that a resumed experiment makes
/// the same decisions. A trial keeps the resources that it was started with. If a step may take long, also set `.stop =
/// ht::within(deadline)`.
struct HyperSched {
  static constexpr const char* type = "hyper_sched";
  static constexpr const char& part = include_hypertune_src_schedulers_hpp_or_link_hypertune_hypertune;

  Seconds deadline = 3600;   ///< above 0; of the experiment's time, all sessions together
  int grace_period = 1;      ///< steps of the first rung
  int reduction_factor = 3;  ///< 2 or more: one in this many trials passes each rung
  int max_steps = 0;         ///< steps after which a trial is complete; 0: no limit

  static void describe(auto& self, auto&& option) {
    option("deadline", self.deadline, above(0).in(Bounds::Unit::seconds), "when the best model is wanted");
    option("grace_period", self.grace_period, at_least(1), "steps of the first rung");
    option("reduction_factor", self.reduction_factor, at_least(2), "one in this many trials passes each rung");
    option("max_steps", self.max_steps, at_least(0), "steps after which a trial is complete; 0: no limit");
  }

  detail::Indirect<detail::HyperSchedState> state_{};

  void on_create(TrialId trial);
  Decision on_report(const Progress& progress);
  void on_resume(TrialId id);
  void on_end(TrialId id, TrialState);
  Choice choose_next(const Pool& pool) const;
  std::string why(TrialId id, const LossText& losses) const;

 private:
  /// Whether a trial that starts now could reach the steps of the best one within `left`.
  bool may_enter(Seconds left) const;
  /// The best paused trial that is in the top 1/reduction_factor of its rung, the highest rung first.
  std::optional<TrialId> promotable() const;
};

}  // namespace hypertune::inline v0
