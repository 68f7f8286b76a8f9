// What an evaluation at a point promises: expected improvement and the probability of meeting constraints, as
// logarithms that stay precise where both are next to nothing.
#pragma once

#include <hypertune/search/gp/encoding.hpp>
#include <hypertune/search/gp/model.hpp>
#include <hypertune/space/detail/normal.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace hypertune::detail::gp {

inline constexpr double log_root_two_pi = 0.91893853320467274178;

inline double log_normal_density(double z) { return -z * z / 2 - log_root_two_pi; }

/// The continued fraction 1 / (t + 2 / (t + 3 / (t + …))) for t >= 5: Mills' ratio (1 - Phi(t)) / phi(t) is
/// 1 / (t + that), and 1 - t * Mills' ratio is that / (t + that), without cancellation.
template <class = void>
double mills_tail(double t) {
  if (t > 1e8) return 1 / t;
  double c = 0;
  for (int k = 60; k >= 1; --k) c = (k + 1 > 60 ? 0 : (k + 1) * 1.0) / (t + c);
  return 1 / (t + c);
}

/// log h(z), where h(z) = phi(z) + z Phi(z) is the expected improvement of a standard normal, for any z, and
/// Phi / h and phi / h, which its derivatives are made of. Ament, Daulton, Eriksson, Balandat, Bakshy, "Unexpected
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

template <class>
struct BasicAcquisition;
using Acquisition = BasicAcquisition<void>;

/// The logarithm of the expected improvement over `best`, times the probability that every learnt constraint is met,
/// times the user's prior to the power of `prior_weight` (Hvarfner et al., "piBO", ICLR 2022).
template <class Lazy>
struct BasicAcquisition {
  const Encoding* encoding = nullptr;
  const Model* objective = nullptr;  ///< null: there is nothing to improve on yet, feasibility alone counts
  double best = 0;
  std::vector<const Model*> constraints{};  ///< met at or below 0
  double prior_weight = 0;
  std::vector<double> appended{};  ///< features that are the same wherever it is asked, behind the encoding's

  void evaluate(std::vector<Candidate>& candidates) const {
    if (candidates.empty()) return;
    const std::size_t own = encoding->features();
    Matrix points(candidates.size(), own + appended.size());
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      std::copy(candidates[i].features.begin(), candidates[i].features.end(), points.row(i));
      std::copy(appended.begin(), appended.end(), points.row(i) + own);
      candidates[i].value = prior(candidates[i].point);
    }
    std::vector<double> means, variances;
    if (objective != nullptr) {
      objective->posterior(points, candidates.size(), means, variances);
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        const double sd = std::sqrt(variances[i]);
        candidates[i].value += LogImprovement((best - means[i]) / sd).log_h + std::log(sd);
      }
    }
    for (const Model* constraint : constraints) {
      constraint->posterior(points, candidates.size(), means, variances);
      for (std::size_t i = 0; i < candidates.size(); ++i)
        candidates[i].value += LogCdf(-means[i] / std::sqrt(variances[i])).value;
    }
  }

  /// The value at one candidate and its slope by feature (of the encoding; 0 for categorical ones).
  double evaluate(const Candidate& c, std::vector<double>* slope) const {
    std::vector<double> point = c.features;
    point.insert(point.end(), appended.begin(), appended.end());
    double value = prior(c.point);
    if (slope != nullptr) slope->assign(encoding->features(), 0.0);
    Posterior p;
    const auto add = [&](double by_mean, double by_variance) {
      if (slope == nullptr) return;
      for (std::size_t k = 0; k < slope->size(); ++k)
        (*slope)[k] += by_mean * p.mean_slope[k] + by_variance * p.variance_slope[k];
    };
    if (objective != nullptr) {
      objective->posterior(point, p, slope != nullptr);
      const double sd = std::sqrt(p.variance);
      const LogImprovement improvement((best - p.mean) / sd);
      value += improvement.log_h + std::log(sd);
      add(-improvement.cdf_ratio / sd, improvement.density_ratio / (2 * p.variance));
    }
    for (const Model* constraint : constraints) {
      constraint->posterior(point, p, slope != nullptr);
      const double sd = std::sqrt(p.variance);
      const LogCdf met(-p.mean / sd);
      value += met.value;
      add(-met.slope / sd, met.slope * p.mean / (2 * p.variance * sd));
    }
    return value;
  }

  double prior(const Point& point) const {
    return prior_weight > 0 ? prior_weight * encoding->space().log_prior(point) : 0;
  }
};

}  // namespace hypertune::detail::gp
