// HyperBand: successive halving in brackets that trade the number of trials against the steps per trial.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/detail/parts.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

/// How many trials of a bracket train to how many steps.
struct BracketRung {
  std::int64_t trials;
  int steps;
  friend bool operator==(const BracketRung&, const BracketRung&) = default;
};

/// The brackets of HyperBand, from the most exploring one on, each a list of rungs. As in table 1 of the paper: for
/// max_steps = 81 and reduction_factor = 3 the first has 81 trials at 1 step, 27 at 3, 9 at 9, 3 at 27 and 1 at 81.
std::vector<std::vector<BracketRung>> hyperband_brackets(int max_steps, int reduction_factor);

namespace detail {
class HyperBandState;
}

/// Hyperband (Li et al., "Hyperband: A Novel Bandit-Based Approach to Hyperparameter Optimization", JMLR 2018). Trials
/// fill the brackets of hyperband_brackets() one after the other, over and over. In each bracket all trials train to
/// the first rung and pause there, the best 1/reduction_factor of them train to the next one, and so on to `max_steps`
/// steps. While a rung fills, free slots start trials of the next brackets, so that no slot is idle.
///
/// A failed trial makes room for the next best one. When there are no more trials, the last bracket continues with
/// those it has, in proportion. A NaN loss is promoted only if no loss is finite. A bracket therefore always ends. A
/// trial whose reports skip rungs is compared at each of them. The number of samples should be a multiple of a round
/// over all brackets (81 + 34 + 15 + 8 + 5 = 143 by default).
struct HyperBand {
  static constexpr const char* type = "hyperband";
  static constexpr const char& part = include_hypertune_src_schedulers_hpp_or_link_hypertune_hypertune;

  int max_steps = 81;        ///< steps after which a trial is complete
  int reduction_factor = 3;  ///< 2 or more: one in this many trials passes each rung

  static void describe(auto& self, auto&& option) {
    option("max_steps", self.max_steps, at_least(1), "steps after which a trial is complete");
    option("reduction_factor", self.reduction_factor, at_least(2), "one in this many trials passes each rung");
  }

  detail::Indirect<detail::HyperBandState> state_{};

  void on_create(TrialId trial);
  Decision on_report(const Progress& progress);
  void on_resume(TrialId trial);
  void on_end(TrialId trial, TrialState);
  Choice choose_next(const Pool& pool);
  std::string why(TrialId trial, const LossText& losses) const;
};

}  // namespace hypertune::inline v0
