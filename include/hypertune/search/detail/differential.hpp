// One step of differential evolution: rand/1/bin.
#pragma once

#include <hypertune/search/detail/genes.hpp>
#include <hypertune/search/detail/pending.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace hypertune::inline v0::detail {

/// A child of `target` and the mutant r1 + weight * (r2 - r3) of three different members of `parents` (4 or more, or at
/// least 3 besides the target). Each gene is the mutant's with probability `crossover`, and at least one is. A value
/// outside [0, 1] is drawn anew there. A category is that of r1; if r2 and r3 differ it is, with probability `weight`,
/// a random one.
inline void differential_child(const Genes& genes, const std::vector<const Individual*>& parents,
                               const Individual& target, double weight, double crossover, Rng& rng,
                               std::vector<double>& child) {
  const Individual* r[3] = {};
  for (std::size_t k = 0; k < 3;) {
    const auto i = static_cast<std::size_t>(uniform01(rng) * static_cast<double>(parents.size()));
    const Individual* one = parents[std::min(i, parents.size() - 1)];
    if (one == &target || std::find(r, r + k, one) != r + k) continue;
    r[k++] = one;
  }
  const auto forced = static_cast<std::size_t>(uniform01(rng) * static_cast<double>(genes.size()));
  for (std::size_t g = 0; g < genes.size(); ++g) {
    const Gene& gene = genes[g];
    double own = target.genome[gene.dimension];
    double x[3];
    for (std::size_t k = 0; k < 3; ++k) {  // if a parameter is inactive in a parent, use the target's value
      x[k] = r[k]->genome[gene.dimension];
      if (!is_active(x[k])) x[k] = is_active(own) ? own : uniform01(rng);
    }
    if (!is_active(own)) own = x[0];
    const bool cross = uniform01(rng) < crossover || g == forced;
    double y = x[0] + weight * (x[1] - x[2]);
    if (gene.kind == Gene::Kind::category) y = x[1] != x[2] && uniform01(rng) < weight ? uniform01(rng) : x[0];
    if (!(y >= 0 && y <= 1)) y = uniform01(rng);
    child[gene.dimension] = cross ? y : own;
  }
}

}  // namespace hypertune::inline v0::detail
