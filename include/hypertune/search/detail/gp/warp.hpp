// A learnt warp of an input, for functions that change faster at one end of a dimension than at the other.
#pragma once

#include <algorithm>
#include <cmath>

namespace hypertune::inline v0::detail::gp {

/// The distribution function of Kumaraswamy, 1 - (1 - x^a)^b, at x in [0, 1], and its derivatives: by x, and by the
/// logarithms of a and b. With a = b = 1 it is x. (Snoek, Swersky, Zemel, Adams, "Input Warping for Bayesian
/// Optimization of Non-Stationary Functions", ICML 2014.)
struct Warped {
  double value, slope, by_log_a, by_log_b;

  Warped(double x, double log_a, double log_b) {
    const double inside = 1 - 2 * margin;  // keeps away from the ends, where slopes are unbounded
    const double u = margin + inside * std::clamp(x, 0.0, 1.0), a = std::exp(log_a), b = std::exp(log_b);
    const double log_u = std::log(u), power = std::exp(a * log_u), rest = 1 - power;
    const double log_rest = std::log(rest), tail = std::exp(b * log_rest);
    value = 1 - tail;
    slope = inside * a * b * (power / u) * (tail / rest);
    by_log_a = a * b * (tail / rest) * power * log_u;
    by_log_b = -b * tail * log_rest;
  }

 private:
  static constexpr double margin = 1e-5;
};

}  // namespace hypertune::inline v0::detail::gp
