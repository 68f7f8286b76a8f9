// Losses as a Gaussian process can take them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace hypertune::inline v0::detail::gp {

/// How losses are bent before they are standardised. Losses are heavy-tailed as a rule: a few configurations are very
/// bad, and what matters happens near the least. Power transforms are what HEBO does about it (Cowen-Rivers et al.,
/// "HEBO: Pushing The Limits of Sample-Efficient Hyperparameter Optimisation", JAIR 2022); here they start from the
/// least loss seen, in units of the distance from there to a low quantile, so that an offset of the losses changes
/// nothing.
enum class Bend : std::uint8_t { linear, root, log, fine_log };
inline constexpr Bend all_bends[] = {Bend::linear, Bend::root, Bend::log, Bend::fine_log};

/// What a bend has to gain, in nats, for losses not to be taken as they are: with less, what is near the best was lost
/// sight of on Levy functions.
constexpr double charge(Bend bend) { return bend == Bend::linear ? 0 : 4; }

struct Transformed {
  std::vector<double> values;  ///< mean 0 and variance 1, or all 0
  double log_jacobian = 0;     ///< the sum of the logarithms of the derivatives, what is cut off as if
                               ///< by a logarithm: what makes likelihoods comparable
};

/// Losses that are not finite count as the worst that are. There must be one that is finite.
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
  // The unit: a quantile that is not the least itself, whatever is tied with it.
  double unit = 0;
  for (double q = bend == Bend::fine_log ? 0.1 : 0.5; unit <= 1e-12 * range; q = q + (1 - q) / 2 + 0.01) {
    if (q >= 1) {
      unit = range;
      break;
    }
    unit = quantile(q) - least;
  }
  const double cap = least + std::min(range, 1e12 * unit);
  // Outliers say "bad", and no more. Their density is that of a logarithm, or which bend is the likelier would depend
  // on what losses are measured in.
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

/// How much a learnt constraint is violated: 0 stays where it is, as it is what matters, and large values are drawn
/// together (bilog; Eriksson and Poloczek, "Scalable Constrained Bayesian Optimization", AISTATS 2021).
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
