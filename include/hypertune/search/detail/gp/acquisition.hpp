// The value of evaluating a point: expected improvement and the probability of meeting constraints, as logarithms that
// stay precise when both are tiny.
#pragma once

#include <hypertune/search/detail/gp/chain.hpp>
#include <hypertune/search/detail/gp/encoding.hpp>
#include <hypertune/search/detail/gp/logarithms.hpp>
#include <hypertune/search/detail/gp/model.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace hypertune::inline v0::detail::gp {

/// The sum of these logarithms: the expected improvement over `best`; the probability that a scheduler lets the trial
/// run until the improvement shows (without it, configurations that are stopped at once are suggested again and again,
/// as nothing is learnt of their final loss); the probability that every learnt constraint is met; and the user's
/// prior, multiplied by `prior_weight` (Hvarfner et al., "piBO", ICLR 2022).
struct Acquisition {
  const Encoding* encoding = nullptr;
  const Chain* objective = nullptr;  ///< null: there is nothing to improve on yet, only feasibility counts
  double best = 0;
  std::vector<const Model*> constraints{};  ///< met if at most 0
  double prior_weight = 0;

  void evaluate(std::vector<Candidate>& candidates) const {
    if (candidates.empty()) return;
    Matrix points(candidates.size(), encoding->features());
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      std::copy(candidates[i].features.begin(), candidates[i].features.end(), points.row(i));
      candidates[i].value = prior(candidates[i].point);
    }
    std::vector<double> means, variances;
    if (objective != nullptr) {
      std::vector<double> passing(candidates.size(), 0.0);
      objective->posterior(points, candidates.size(), means, variances, &passing);
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        const double sd = std::sqrt(variances[i]);
        candidates[i].value += LogImprovement((best - means[i]) / sd).log_h + std::log(sd) + passing[i];
      }
    }
    for (const Model* constraint : constraints) {
      constraint->posterior(points, candidates.size(), means, variances);
      for (std::size_t i = 0; i < candidates.size(); ++i)
        candidates[i].value += LogCdf(-means[i] / std::sqrt(variances[i])).value;
    }
  }

  /// The value of one candidate and its gradient by feature (of the encoding; 0 for categorical ones).
  double evaluate(const Candidate& c, std::vector<double>* slope) const {
    double value = prior(c.point);
    if (slope != nullptr) slope->assign(encoding->features(), 0.0);
    Posterior p;
    const auto add = [&](double by_mean, double by_variance) {
      if (slope == nullptr) return;
      for (std::size_t k = 0; k < slope->size(); ++k)
        (*slope)[k] += by_mean * p.mean_slope[k] + by_variance * p.variance_slope[k];
    };
    if (objective != nullptr) {
      double passing = 0;
      objective->posterior(c.features, p, slope != nullptr, &passing, slope);
      const double sd = std::sqrt(p.variance);
      const LogImprovement improvement((best - p.mean) / sd);
      value += improvement.log_h + std::log(sd) + passing;
      add(-improvement.cdf_ratio / sd, improvement.density_ratio / (2 * p.variance));
    }
    for (const Model* constraint : constraints) {
      constraint->posterior(c.features, p, slope != nullptr);
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

}  // namespace hypertune::inline v0::detail::gp
