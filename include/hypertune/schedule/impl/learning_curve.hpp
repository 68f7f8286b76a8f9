// LearningCurve: definitions.
#pragma once

#include <hypertune/schedule/detail/welch.hpp>
#include <hypertune/schedule/learning_curve.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <unordered_map>

namespace hypertune::inline v0::detail {

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

struct LearningCurveState {
  struct Trial {
    CurveEnsemble curve;
    int reports = 0;
  };
  std::unordered_map<TrialId, Trial> trials{};  // running trials
  double best = worst_loss;
  struct Verdict {
    double loss = worst_loss, bar = worst_loss, chance = 0;
    int steps = 0;
  };
  Verdict verdict{};  // on the last trial that was stopped
};

void CurveEnsemble::add(double step, double value) {
  if (count_ == 0) {
    first_ = value;
    low_ = high_ = 0;
  }
  const double y = value - first_;
  ++count_;
  low_ = std::min(low_, y);
  high_ = std::max(high_, y);
  sum_ += y;
  squares_ += y * y;
  for (std::size_t j = 0; j < size; ++j) {
    const double x = basis(j, step);
    x_[j] += x;
    xx_[j] += x * x;
    xy_[j] += x * y;
  }
}

double CurveEnsemble::below(double step, double target) const {
  const double range = high_ - low_;
  const double n = static_cast<double>(count_);
  const double goal = target - first_;
  if (count_ == 0 || !std::isfinite(range) || !std::isfinite(goal)) return 0.5;
  if (range <= 0) return goal > 0 ? 1 : 0;  // the loss has never changed
  // In units of the range seen: level and amount are of that order, within a factor of `wide`. The prior of the noise
  // is about a hundredth of it.
  constexpr double wide = 10, shape = 1;
  const double noise = 0.01;
  const double prior = noise * noise / (wide * wide);  // precision of level and amount, relative to the noise
  std::array<double, size> evidence{}, chance{};
  double most = -1e300;
  for (std::size_t j = 0; j < size; ++j) {
    // The posterior of (level, amount): precision P = prior + X'X, mean P^-1 X'y.
    const double p00 = n + prior, p01 = x_[j], p11 = xx_[j] + prior;
    const double r0 = sum_ / range, r1 = xy_[j] / range;
    const double determinant = p00 * p11 - p01 * p01;
    if (!(determinant > 0)) {
      evidence[j] = -1e300;
      continue;
    }
    const double level = (p11 * r0 - p01 * r1) / determinant;
    const double amount = (p00 * r1 - p01 * r0) / determinant;
    const double a = shape + n / 2;
    const double residual = std::max(0.0, squares_ / (range * range) - level * r0 - amount * r1);
    const double b = shape * noise * noise + residual / 2;
    evidence[j] = -0.5 * std::log(determinant) - a * std::log(b);
    most = std::max(most, evidence[j]);
    const double x = basis(j, step);
    const double spread = 1 + (p11 - 2 * x * p01 + x * x * p00) / determinant;
    const double scale = std::sqrt(b / a * spread);
    chance[j] = student_below((goal / range - level - amount * x) / scale, 2 * a);
  }
  double weights = 0, total = 0;
  for (std::size_t j = 0; j < size; ++j) {
    const double weight = std::exp(evidence[j] - most);
    weights += weight;
    total += weight * chance[j];
  }
  return weights > 0 ? total / weights : 0.5;
}

double CurveEnsemble::basis(std::size_t j, double step) {
  // Powers from 1/16 to 4; rates from 1/1000 to about 2 per step.
  if (j < powers) return std::pow(step, -std::exp2(-4 + 6.0 * static_cast<double>(j) / (powers - 1)));
  return std::exp(-step * std::exp2(-10 + static_cast<double>(j - powers)));
}

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

Decision LearningCurve::on_report(const Progress& progress) {
  auto& state = state_.made();
  auto& trial = state.trials[progress.trial];
  ++trial.reports;
  const double loss = progress.loss();
  const bool finite = std::isfinite(loss);
  if (finite) trial.curve.add(progress.steps, loss);
  const double best = state.best;  // of all reports before this one
  if (finite) state.best = std::min(state.best, loss);
  if (progress.steps >= max_steps) return Decision::complete;
  if (trial.reports < points || !std::isfinite(best)) return Decision::proceed;
  state.verdict = {.loss = loss, .bar = best, .chance = 0, .steps = progress.steps};
  if (trial.curve.count() == 0) return Decision::stop;
  if (trial.curve.count() < static_cast<std::size_t>(points) || loss <= best) return Decision::proceed;
  state.verdict.chance = trial.curve.below(max_steps, best);
  return state.verdict.chance < chance ? Decision::stop : Decision::proceed;
}

std::string LearningCurve::why(TrialId, const LossText& losses) const {
  const auto& state = state_.or_default();
  if (!std::isfinite(state.verdict.loss) && state.verdict.chance == 0)
    return detail::format("after {} reports without a finite {}", points, losses.name());
  return detail::format("at step {}: {}, with a chance of {:.2g} to get there in {} steps ({:g} is asked for)",
                        state.verdict.steps, losses.against(state.verdict.loss, state.verdict.bar),
                        state.verdict.chance, max_steps, chance);
}

void LearningCurve::on_end(TrialId trial, TrialState) {
  auto& state = state_.made();
  state.trials.erase(trial);
}

}  // namespace hypertune::inline v0
