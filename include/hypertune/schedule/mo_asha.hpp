// MoAsha: asynchronous successive halving for several objectives.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/detail/parts.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <string>

namespace hypertune::inline v0 {

namespace detail {
struct MoAshaState;
}

/// Multi-objective ASHA (Schmucker et al., "Multi-objective Asynchronous Successive Halving", 2021), in its stopping
/// form, with the epsilon net of Salinas et al. (2021), which the paper found best. Like Asha, but a trial passes a
/// rung if it is among the best 1/reduction_factor of the trials that have reached it so far, ordered by nondominated
/// sorting and within a front by an epsilon net, which keeps every part of the front. With one objective it is Asha.
///
/// A trial with a NaN or infinite loss never passes a rung that has a trial without one. Only the last `history` trials
/// of a rung count; a report at a rung takes some microseconds for them.
struct MoAsha {
  static constexpr const char* type = "mo_asha";
  static constexpr const char& part = include_hypertune_src_schedulers_hpp_or_link_hypertune_hypertune;

  int grace_period = 1;      ///< steps of the first rung
  int max_steps = 81;        ///< steps after which a trial is complete
  int reduction_factor = 3;  ///< 2 or more: one in this many trials passes each rung
  int history = 200;         ///< 2 or more: trials of a rung that a new one is compared with, the latest

  static void describe(auto& self, auto&& option) {
    option("grace_period", self.grace_period, at_least(1), "steps that every trial gets, at least");
    option("max_steps", self.max_steps, at_least(1), "steps after which a trial is complete");
    option("reduction_factor", self.reduction_factor, at_least(2), "one in this many trials passes each rung");
    option("history", self.history, at_least(2), "the latest trials that a new one is compared with at a rung");
  }
  void check() const;

  static constexpr bool multi_objective = true;

  detail::Indirect<detail::MoAshaState> state_{};

  Decision on_report(const Progress& progress);
  void on_end(TrialId trial, TrialState);

  std::string why(TrialId trial, const LossText& losses) const;
};

}  // namespace hypertune::inline v0
