// LearningCurve: stops a trial whose learning curve will not reach the best one.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/detail/parts.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <string>

namespace hypertune::inline v0 {

namespace detail {
struct LearningCurveState;
}

/// Stops a trial when the probability that its learning curve, extrapolated to `max_steps` steps, falls below the best
/// loss of any trial is less than `chance` (Domhan, Springenberg and Hutter, "Speeding up Automatic Hyperparameter
/// Optimization of Deep Neural Networks by Extrapolation of Learning Curves", IJCAI 2015). Instead of the paper's
/// eleven curves fitted by Markov chains it uses two families, power laws and exponentials, whose weights can be
/// computed exactly: about two microseconds per report.
///
/// A trial is never stopped on fewer than `points` finite reports. A trial with `points` reports and only infinite (or
/// NaN) losses is stopped once another trial has had a finite loss.
struct LearningCurve {
  static constexpr const char* type = "learning_curve";
  static constexpr const char& part = include_hypertune_src_schedulers_hpp_or_link_hypertune_hypertune;

  int max_steps = 100;   ///< steps after which a trial is complete
  int points = 8;        ///< 4 or more: reports needed before a trial may be stopped
  double chance = 0.05;  ///< above 0 and below 0.5: probability below which a trial is stopped

  static void describe(auto& self, auto&& option) {
    option("max_steps", self.max_steps, at_least(1), "steps after which a trial is complete");
    option("points", self.points, at_least(4), "reports needed before a trial may be stopped");
    option("chance", self.chance, above(0).below(0.5), "the probability of becoming the best below which a trial ends");
  }

  detail::Indirect<detail::LearningCurveState> state_{};

  Decision on_report(const Progress& progress);
  void on_end(TrialId trial, TrialState);
  std::string why(TrialId, const LossText& losses) const;
};

}  // namespace hypertune::inline v0
