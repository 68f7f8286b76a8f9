// Patience: a trial that no longer improves ends (early stopping, trial by trial).
#pragma once

#include <hypertune/schedule/scheduler.hpp>

#include <algorithm>
#include <string>
#include <unordered_map>

namespace hypertune {

/// Ends a trial whose loss has not fallen by more than `min_improvement` below its best for `patience` steps. It
/// compares a trial with nothing but itself.
struct Patience {
  int patience = 10;           ///< steps without an improvement, 1 or more
  double min_improvement = 0;  ///< in units of the metric; 0 or more
  int grace = 1;               ///< steps that every trial gets, at least
  int max = 0;                 ///< steps after which a trial is complete; 0: when it ends by itself

  struct Trial {
    int best_steps = 0;
    double best = worst_loss;
  };
  std::unordered_map<TrialId, Trial> trials_{};  ///< under way

  void check() const {
    if (patience < 1) fail(Errc::usage, "patience: patience is {}, but must be at least 1", patience);
    if (!(min_improvement >= 0))
      fail(Errc::usage, "patience: min_improvement is {}, but must not be below 0", min_improvement);
    if (grace < 1) fail(Errc::usage, "patience: grace is {}, but must be at least 1", grace);
    if (max < 0) fail(Errc::usage, "patience: max is {}, but must be 0 (no limit) or a number of steps", max);
  }
  Decision on_report(const Progress& progress) {
    Trial& trial = trials_[progress.trial];
    if (progress.loss() < trial.best - min_improvement) {
      trial.best = progress.loss();
      trial.best_steps = progress.steps;
    }
    if (max > 0 && progress.steps >= max) return Decision::complete;
    const bool stuck = progress.steps - trial.best_steps >= patience;
    return stuck && progress.steps >= grace ? Decision::stop : Decision::go_on;
  }
  void on_end(TrialId trial, TrialState) { trials_.erase(trial); }
  int max_steps() const { return max; }
  std::string name() const { return "patience"; }
  std::string why(TrialId id, const LossText& losses) const {
    const auto found = trials_.find(id);
    if (found == trials_.end()) return {};
    const Trial& trial = found->second;
    if (trial.best == worst_loss) return detail::format("after {} steps without a finite {}", patience, losses.name());
    return detail::format("after {} steps without an improvement{}: best {} after {} step{}", patience,
                          min_improvement > 0 ? detail::format(" by more than {:g}", min_improvement) : "",
                          losses.named(trial.best), trial.best_steps, trial.best_steps == 1 ? "" : "s");
  }
};

}  // namespace hypertune
