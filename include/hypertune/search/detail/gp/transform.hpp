// Transforms losses for a Gaussian process.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hypertune::inline v0::detail::gp {

/// How losses are transformed before they are standardised. Losses are usually heavy-tailed: a few configurations are
/// very bad, and the relevant differences are near the least loss. HEBO uses power transforms against that
/// (Cowen-Rivers et al., "HEBO: Pushing The Limits of Sample-Efficient Hyperparameter Optimisation", JAIR 2022). Here
/// they start from the least loss seen, in units of the distance from there to a low quantile, so that an offset of the
/// losses has no effect.
enum class Bend : std::uint8_t { linear, root, log, fine_log };
inline constexpr Bend all_bends[] = {Bend::linear, Bend::root, Bend::log, Bend::fine_log};

/// The nats that a bend has to gain over untransformed losses: with less, the neighbourhood of the best was lost on
/// Levy functions.
constexpr double complexity_penalty(Bend bend) { return bend == Bend::linear ? 0 : 4; }

struct Transformed {
  std::vector<double> values;  ///< mean 0 and variance 1, or all 0
  double log_jacobian = 0;     ///< the sum of the logarithms of the derivatives, with clipping counted as
                               ///< a logarithm: needed to compare likelihoods
};

/// Non-finite losses count as the worst finite ones. At least one loss must be finite.
inline Transformed transform(const std::vector<double>& losses, Bend bend) {
  const std::size_t n = losses.size();
  std::vector<double> sorted;
  for (const double y : losses)
    if (std::isfinite(y)) sorted.push_back(std::clamp(y, -1e100, 1e100));
  std::sort(sorted.begin(), sorted.end());
  const auto quantile = [&](double q) {
    const double at = q * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return std::lerp(sorted[below], sorted[above], at - static_cast<double>(below));
  };
  Transformed result;
  result.values.resize(n, 0.0);
  const double least = sorted.empty() ? 0 : sorted.front();
  const double range = sorted.empty() ? 0 : sorted.back() - least;
  if (!(range > 0) || !(range > 1e-14 * std::fabs(least))) return result;
  // The unit: the distance of a quantile above the least loss, even if many losses are tied with that.
  double unit = 0;
  for (double q = bend == Bend::fine_log ? 0.1 : 0.5; unit <= 1e-12 * range; q = q + (1 - q) / 2 + 0.01) {
    if (q >= 1) {
      unit = range;
      break;
    }
    unit = quantile(q) - least;
  }
  const double cap = least + std::min(range, 1e12 * unit);
  // Outliers are clipped: they are just bad. Their density is counted as that of a logarithm, or the choice of a bend
  // would depend on the unit of the losses.
  constexpr double far = 30;
  double mean = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double y = std::isfinite(losses[i]) ? std::clamp(losses[i], least, cap) : losses[i] < 0 ? least : cap;
    const double z = (y - least) / unit;
    double& t = result.values[i];
    double log_slope = -std::log(unit);
    switch (bend) {
      case Bend::linear:
        t = std::min(z, far);
        if (z > far) log_slope -= std::log(z / far);
        break;
      case Bend::root:
        t = std::sqrt(1 + z);
        log_slope -= std::log(2 * t);
        break;
      case Bend::log:
      case Bend::fine_log:
        t = std::log1p(z);
        log_slope -= t;
        break;
    }
    result.log_jacobian += log_slope;
    mean += t / static_cast<double>(n);
  }
  double variance = 0;
  for (double& t : result.values) {
    t -= mean;
    variance += t * t / static_cast<double>(n);
  }
  const double sd = std::sqrt(variance);
  if (!(sd > 0)) {
    std::fill(result.values.begin(), result.values.end(), 0.0);
    return result;
  }
  for (double& t : result.values) t /= sd;
  result.log_jacobian -= static_cast<double>(n) * std::log(sd);
  return result;
}

/// The violations of a learnt constraint, transformed: 0 stays 0, as that is the decisive value, and large values are
/// compressed (bilog; Eriksson and Poloczek, "Scalable Constrained Bayesian Optimization", AISTATS 2021).
inline std::vector<double> transform_constraint(const std::vector<double>& violations) {
  std::vector<double> magnitudes;
  for (const double c : violations)
    if (std::isfinite(c) && c != 0) magnitudes.push_back(std::fabs(c));
  double unit = 1;
  if (!magnitudes.empty()) {
    const auto middle = magnitudes.begin() + static_cast<std::ptrdiff_t>(magnitudes.size() / 2);
    std::nth_element(magnitudes.begin(), middle, magnitudes.end());
    unit = *middle;
  }
  std::vector<double> result;
  double square = 0;
  for (const double c : violations) {
    const double size = std::log1p(std::min(std::fabs(c) / unit, 1e6));
    result.push_back(c < 0 ? -size : size);
    square += size * size / static_cast<double>(violations.size());
  }
  if (square > 0)
    for (double& c : result) c /= std::sqrt(square);
  return result;
}

}  // namespace hypertune::inline v0::detail::gp
