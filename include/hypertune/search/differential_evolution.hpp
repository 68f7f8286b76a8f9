// Differential evolution: steps along the differences between good configurations.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/detail/parts.hpp>
#include <hypertune/search/searcher.hpp>

namespace hypertune::inline v0 {

namespace detail {
class DifferentialState;
}

/// Differential evolution (Storn and Price, "Differential Evolution: A Simple and Efficient Heuristic", Journal of
/// Global Optimization 11, 1997): rand/1/bin in the unit cube, for one objective. Asynchronous: trial k challenges
/// member k modulo the population size as soon as it has ended, independently of the other trials. Failed trials do not
/// challenge, and no trial is waited for. The population begins with a scrambled Sobol design, or draws from the user's
/// priors.
struct DifferentialEvolution {
  static constexpr const char* type = "differential_evolution";
  static constexpr const char& part = include_hypertune_src_models_hpp_or_link_hypertune_hypertune;

  int population_size = 0;             ///< 4 or more; 0: a twentieth of the samples, between 8 and 40
  double mutation_factor = 0.5;        ///< above 0, at most 2: of the difference that is added
  double crossover_probability = 0.9;  ///< of a parameter to come from the mutant

  static void describe(auto& self, auto&& option) {
    option("population_size", self.population_size, at_least(4).or_zero(),
           "0: a twentieth of the samples, between 8 and 40");
    option("mutation_factor", self.mutation_factor, above(0).at_most(2), "of differences");
    option("crossover_probability", self.crossover_probability, between(0, 1),
           "of a parameter to come from the mutant");
  }

  detail::Indirect<detail::DifferentialState> state_{};

  void prepare(const SearchSpace& space, const SearchContext& goal);
  Suggestion suggest(const Ask& ask);
  void observe(const Observation& o);
};

}  // namespace hypertune::inline v0
