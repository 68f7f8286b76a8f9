// Logarithms of the normal distribution and of expected improvement that stay precise when both are tiny.
#pragma once

#include <hypertune/space/detail/normal.hpp>

#include <cmath>

namespace hypertune::inline v0::detail::gp {

inline constexpr double log_root_two_pi = 0.91893853320467274178;

inline double log_normal_density(double z) { return -z * z / 2 - log_root_two_pi; }

/// c = 1 / (t + 2 / (t + 3 / (t + …))), a continued fraction, for t >= 5. Mills' ratio (1 - Phi(t)) / phi(t) is
/// 1 / (t + c), and 1 - t * Mills' ratio is c / (t + c), without cancellation.
inline double mills_tail(double t) {
  if (t > 1e8) return 1 / t;
  double c = 0;
  for (int k = 60; k >= 1; --k) c = (k + 1 > 60 ? 0 : (k + 1) * 1.0) / (t + c);
  return 1 / (t + c);
}

/// log h(z), where h(z) = phi(z) + z Phi(z) is the expected improvement of a standard normal, for any z; and Phi / h
/// and phi / h, from which its derivatives are computed. Ament, Daulton, Eriksson, Balandat, Bakshy, "Unexpected
/// Improvements to Expected Improvement for Bayesian Optimization", NeurIPS 2023.
struct LogImprovement {
  double log_h, cdf_ratio, density_ratio;

  explicit LogImprovement(double z) {
    if (z > -6) {
      const double density = std::exp(log_normal_density(z)), cdf = normal_cdf(z);
      const double h = density + z * cdf;
      log_h = std::log(h);
      cdf_ratio = cdf / h;
      density_ratio = density / h;
    } else {
      const double c = mills_tail(-z);
      log_h = log_normal_density(z) + std::log(c) - std::log(c - z);
      cdf_ratio = 1 / c;
      density_ratio = (c - z) / c;
    }
  }
};

/// log Phi(z) for any z, and its derivative.
struct LogCdf {
  double value, slope;

  explicit LogCdf(double z) {
    if (z > -6) {
      const double cdf = normal_cdf(z);
      value = std::log(cdf);
      slope = std::exp(log_normal_density(z)) / cdf;
    } else {
      const double c = mills_tail(-z);
      value = log_normal_density(z) - std::log(c - z);
      slope = c - z;
    }
  }
};

}  // namespace hypertune::inline v0::detail::gp
