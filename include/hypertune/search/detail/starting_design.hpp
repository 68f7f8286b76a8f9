// The first genomes of a population: evenly distributed over the space, or drawn from the user's priors.
#pragma once

#include <hypertune/search/detail/genes.hpp>
#include <hypertune/search/detail/sobol_sequence.hpp>
#include <hypertune/trial/trial.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hypertune::inline v0::detail {

/// The first genomes of a population, by trial number: points of a scrambled Sobol sequence, or, if the user has given
/// priors, three out of four drawn from those.
class StartingDesign {
 public:
  StartingDesign() = default;
  StartingDesign(const Genes& genes, std::uint64_t seed)
      : sobol_(std::min(genes.size(), SobolSequence::max_dimensions), true, seed), prior_(genes.space().has_prior()) {}

  /// Writes the genome of `trial`. Attempts after the first one (which met no constraints) are drawn from `rng`.
  void draw(const Genes& genes, TrialId trial, int attempt, Rng& rng, std::vector<double>& genome) const {
    const auto index = static_cast<std::uint64_t>(trial);
    if (prior_ && index % 4 != 3) {
      genome = genes.genome(genes.space().sample_prior(rng));
      for (double& x : genome)
        if (!is_active(x)) x = uniform01(rng);
      return;
    }
    for (std::size_t i = 0; i < genes.size(); ++i) {
      const bool covered = attempt == 0 && i < SobolSequence::max_dimensions;
      genome[genes[i].dimension] = covered ? sobol_.at(index % SobolSequence::length, i) : uniform01(rng);
    }
  }

 private:
  SobolSequence sobol_;
  bool prior_ = false;
};

}  // namespace hypertune::inline v0::detail
