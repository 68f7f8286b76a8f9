// The standard normal distribution: its cumulative probability and the inverse.
#pragma once

#include <cmath>

namespace hypertune::inline v0::detail {

/// P(Z <= z).
inline double normal_cdf(double z) { return 0.5 * std::erfc(-z * 0.70710678118654752440); }

/// The z with P(Z <= z) = p, for p in (0, 1), to about 1 part in 10^16.
/// Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution", Applied Statistics 37 (1988).
double normal_quantile(double p);

}  // namespace hypertune::inline v0::detail
