// Variation operators: simulated binary crossover and polynomial mutation.
#pragma once

#include <hypertune/search/detail/genes.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace hypertune::inline v0::detail {

/// One child of the values a and b in [0, 1] (Deb and Agrawal 1995, with bounds). The larger `eta`, the nearer it is to
/// one of them.
inline double simulated_binary(double a, double b, double eta, Rng& rng) {
  const double low = std::min(a, b), high = std::max(a, b);
  const bool lower = uniform01(rng) < 0.5;
  const double u = uniform01(rng);
  if (!(high - low > 1e-14)) return a;
  const double room = lower ? low : 1 - high;
  const double alpha = 2 - std::pow(1 + 2 * room / (high - low), -(eta + 1));
  const double spread = std::pow(u <= 1 / alpha ? u * alpha : 1 / (2 - u * alpha), 1 / (eta + 1));
  const double x = lower ? 0.5 * (low + high - spread * (high - low)) : 0.5 * (low + high + spread * (high - low));
  return std::clamp(x, 0.0, 1.0);
}

/// A value near x in [0, 1] (Deb and Goyal 1996, with bounds).
inline double polynomial_mutation(double x, double eta, Rng& rng) {
  const double u = uniform01(rng);
  const double delta = u < 0.5 ? std::pow(2 * u + (1 - 2 * u) * std::pow(1 - x, eta + 1), 1 / (eta + 1)) - 1
                               : 1 - std::pow(2 * (1 - u) + (2 * u - 1) * std::pow(x, eta + 1), 1 / (eta + 1));
  return std::clamp(x + delta, 0.0, 1.0);
}

/// Changes one gene: a discrete one by at least one step, a category to a random other option.
inline double mutated(const Gene& gene, double x, double eta, Rng& rng) {
  if (gene.kind == Gene::Kind::category) {
    const std::size_t now = Genes::option_of(x, gene.options);
    auto other = static_cast<std::size_t>(uniform01(rng) * static_cast<double>(gene.options - 1));
    other = std::min(other, gene.options - 2);
    return Genes::of_option(other < now ? other : other + 1, gene.options);
  }
  const double y = polynomial_mutation(x, eta, rng);
  if (gene.kind == Gene::Kind::real) return y;
  const auto cell = [&](double v) {
    return std::upper_bound(gene.edges.begin(), gene.edges.end(), v) - gene.edges.begin();
  };
  const auto now = cell(x), last = static_cast<std::ptrdiff_t>(gene.edges.size());
  if (cell(y) != now) return y;
  const bool up = now == 0 || (now < last && uniform01(rng) < 0.5);
  const auto next = up ? now + 1 : now - 1;
  const double low = next == 0 ? 0 : gene.edges[static_cast<std::size_t>(next - 1)];
  const double high = next == last ? 1 : gene.edges[static_cast<std::size_t>(next)];
  return (low + high) / 2;
}

}  // namespace hypertune::inline v0::detail
