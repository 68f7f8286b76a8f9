// Whether one series is larger than another one, pair by pair.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/space/detail/normal.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace hypertune::inline v0::detail {

/// The regularised incomplete beta function I_x(a, b), by its continued fraction (Lentz).
double incomplete_beta(double a, double b, double x);

/// P(T > t) of Student's distribution.
inline double student_upper(double t, double degrees) {
  const double tail = incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t)) / 2;
  return t > 0 ? tail : 1 - tail;
}

/// The probability of differences with such a mean, or a larger one, if their true mean were 0: the paired t-test, one
/// sided. Without any spread: 0 or 1.
double paired_t_test(std::span<const double> differences);

/// The same by ranks (Wilcoxon's signed-rank test), which asks for no scale that instances have in common. Exact up to
/// 25 differences without ties, else normal with corrections for ties and continuity. Equal pairs say nothing.
double signed_rank_test(std::span<const double> differences);

}  // namespace hypertune::inline v0::detail

#ifndef HYPERTUNE_COMPILED
#include <hypertune/schedule/detail/impl/paired_tests.hpp>
#endif
