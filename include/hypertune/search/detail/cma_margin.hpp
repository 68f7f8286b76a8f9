// Margins: the probability of an option of a discrete axis must not become so small that it is never tried again.
#pragma once

#include <hypertune/search/detail/cma_distribution.hpp>
#include <hypertune/space/detail/normal.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace hypertune::inline v0::detail {

/// Corrects mean and stretch of axis j, whose options are separated by `edges` (rising, at least one), so that the
/// options other than the mean's keep a total probability of `margin` (Hamano, Saito, Nomura, Shirakawa, "CMA-ES with
/// Margin: Lower-Bounding Marginal Probability for Mixed-Integer Black-Box Optimization", GECCO 2022).
inline void keep_margin(CmaDistribution& distribution, std::size_t j, const std::vector<double>& edges, double margin) {
  double& mean = distribution.mean()[j];
  const double deviation = distribution.deviation(j);
  const auto above = std::lower_bound(edges.begin(), edges.end(), mean);  // upper edge of the mean's option
  if (above == edges.begin() || above == edges.end()) {                   // the first or the last option
    const double edge = above == edges.end() ? edges.back() : edges.front();
    const double most = normal_quantile(1 - margin) * deviation;
    mean = edge + std::clamp(mean - edge, -most, most);
    return;
  }
  const double low = *(above - 1), high = *above;
  const double below = normal_cdf((low - mean) / deviation);
  const double beyond = normal_cdf((mean - high) / deviation);
  if (below >= margin / 2 && beyond >= margin / 2) return;
  const double within = 1 - below - beyond;
  double p = std::max(margin / 2, below), q = std::max(margin / 2, beyond);
  const double surplus = (1 - p - q - within) / (p + q + within - 3 * margin / 2);
  p += surplus * (p - margin / 2);
  q += surplus * (q - margin / 2);
  const double a = normal_quantile(1 - std::clamp(p, 1e-12, 0.5 - 1e-12));
  const double b = normal_quantile(1 - std::clamp(q, 1e-12, 0.5 - 1e-12));
  if (!(a + b > 0) || !(deviation > 0)) return;
  mean = (low * b + high * a) / (a + b);
  distribution.stretch()[j] *= (high - low) / (a + b) / deviation;
}

}  // namespace hypertune::inline v0::detail
