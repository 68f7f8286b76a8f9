// Tests whether one series is larger than another one, pair by pair.
#pragma once

#include <hypertune/schedule/detail/welch.hpp>
#include <hypertune/space/detail/normal.hpp>

#include <span>

namespace hypertune::inline v0::detail {

/// The regularised incomplete beta function I_x(a, b), by its continued fraction (Lentz).
double incomplete_beta(double a, double b, double x);

/// P(T > t) of Student's distribution.
inline double student_upper(double t, double degrees) {
  const double tail = incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t)) / 2;
  return t > 0 ? tail : 1 - tail;
}

/// The p-value of the one-sided paired t-test: the probability of differences with this mean, or a larger one, if the
/// true mean were 0. If all differences are equal: 0 or 1.
double paired_t_test(std::span<const double> differences);

/// The p-value by ranks (Wilcoxon's signed-rank test), which depends less on the scales of the instances. Exact up to
/// 25 differences without ties, else a normal approximation with corrections for ties and continuity. Equal pairs are
/// ignored.
double signed_rank_test(std::span<const double> differences);

}  // namespace hypertune::inline v0::detail
