// LearningCurve: stops a trial whose learning curve will not reach the best one.
#pragma once

#include <hypertune/schedule/scheduler.hpp>
#include <hypertune/schedule/welch.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <unordered_map>

namespace hypertune::inline v0 {

namespace detail {

/// Extrapolates a learning curve: an ensemble of curves level + amount * s^-b (power laws) and
/// level + amount * exp(-k s), over a grid of b and k. Level and amount of each are fitted by Bayesian linear
/// regression with unknown noise (normal-inverse-gamma); the curves are weighted by their evidence. All integrals are
/// exact, so that nothing is sampled. The cost of adding a value depends only on the size of the grid, not on the
/// number of earlier values.
class CurveEnsemble {
 public:
  /// Adds the value after `step` steps, 1 or more. The value must be finite.
  void add(double step, double value);
  std::size_t count() const { return count_; }

  /// The probability that the value after `step` steps is below `target`.
  double below(double step, double target) const;

 private:
  static constexpr std::size_t powers = 16, exponentials = 12, size = powers + exponentials;

  static double basis(std::size_t j, double step);
  static double student_below(double t, double freedom) {
    const double tail = 0.5 * incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t));
    return t > 0 ? 1 - tail : tail;
  }

  std::size_t count_ = 0;
  double first_ = 0, low_ = 0, high_ = 0, sum_ = 0, squares_ = 0;
  std::array<double, size> x_{}, xx_{}, xy_{};
};

}  // namespace detail

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

  int max_steps = 100;   ///< steps after which a trial is complete
  int points = 8;        ///< 4 or more: reports needed before a trial may be stopped
  double chance = 0.05;  ///< above 0 and below 0.5: probability below which a trial is stopped

  static void describe(auto& self, auto&& option) {
    option("max_steps", self.max_steps, at_least(1), "steps after which a trial is complete");
    option("points", self.points, at_least(4), "reports needed before a trial may be stopped");
    option("chance", self.chance, above(0).below(0.5), "the probability of becoming the best below which a trial ends");
  }

  struct Trial {
    detail::CurveEnsemble curve;
    int reports = 0;
  };
  std::unordered_map<TrialId, Trial> trials_{};  // running trials
  double best_ = worst_loss;
  struct Verdict {
    double loss = worst_loss, bar = worst_loss, chance = 0;
    int steps = 0;
  };
  Verdict verdict_{};  // on the last trial that was stopped

  Decision on_report(const Progress& progress);
  void on_end(TrialId trial, TrialState) { trials_.erase(trial); }
  std::string why(TrialId, const LossText& losses) const;
};

}  // namespace hypertune::inline v0
