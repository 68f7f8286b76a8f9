// NSGA-II and NSGA-III: evolution for several objectives.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/detail/parts.hpp>
#include <hypertune/search/searcher.hpp>

namespace hypertune::inline v0 {

namespace detail {
class NsgaState;

void describe_nsga(auto& self, auto& option, const char* population_size) {
  option("population_size", self.population_size, hypertune::at_least(4).or_zero(), population_size);
  option("crossover_probability", self.crossover_probability, hypertune::between(0, 1), "that a child has two parents");
  option("mutation_probability", self.mutation_probability, hypertune::between(0, 1),
         "of each parameter; 0: one in their number");
  option("crossover_eta", self.crossover_eta, hypertune::at_least(0),
         "the larger, the closer children are to a parent");
  option("mutation_eta", self.mutation_eta, hypertune::at_least(0), "the larger, the smaller the changes");
}

}  // namespace detail

/// NSGA-II (Deb, Pratap, Agarwal, Meyarivan, "A Fast and Elitist Multiobjective Genetic Algorithm: NSGA-II", IEEE TEC
/// 6(2), 2002): nondominated sorting, crowding distance, simulated binary crossover and polynomial mutation in the unit
/// cube, uniform crossover of categories; learnt constraints come first in the domination. With one objective it is a
/// plain evolutionary algorithm. The population begins with a scrambled Sobol design, or draws from the user's priors.
///
/// Works in steady state (Durillo et al. 2009), so that parallel trials may end in any order: each result enters the
/// population at once and the worst member leaves it; a trial that never returns blocks nothing. Failed trials never
/// enter; trials that a scheduler stopped are dominated by completed ones.
struct Nsga2 {
  static constexpr const char* type = "nsga2";
  static constexpr const char& part = include_hypertune_src_models_hpp_or_link_hypertune_hypertune;

  int population_size = 0;             ///< 4 or more; 0: a fifteenth of the samples, between 8 and 50
  double crossover_probability = 0.9;  ///< that a child has two parents
  double mutation_probability = 0;     ///< of each parameter; 0: one divided by their number
  double crossover_eta = 20;           ///< 0 or more; the larger, the closer children are to a parent
  double mutation_eta = 20;            ///< 0 or more; the larger, the smaller the changes

  static void describe(auto& self, auto&& option) {
    detail::describe_nsga(self, option, "0: a fifteenth of the samples, between 8 and 50");
  }

  static constexpr bool multi_objective = true;

  detail::Indirect<detail::NsgaState> state_{};

  void prepare(const SearchSpace& space, const SearchContext& goal);
  Suggestion suggest(const Ask& ask);
  void observe(const Observation& o);
};

/// NSGA-III (Deb and Jain, "An Evolutionary Many-Objective Optimization Algorithm Using Reference-Point-Based
/// Nondominated Sorting Approach", IEEE TEC 18(4), 2014): like Nsga2, but the population is spread along reference
/// directions (Das and Dennis) instead of by crowding distance, which works for three and more objectives. Where the
/// paper draws a random member of a niche, the one nearest to its direction is kept.
struct Nsga3 {
  static constexpr const char* type = "nsga3";
  static constexpr const char& part = include_hypertune_src_models_hpp_or_link_hypertune_hypertune;

  int population_size = 0;           ///< 4 or more; 0: by the reference directions, at most as in Nsga2
  double crossover_probability = 1;  ///< these as in Nsga2
  double mutation_probability = 0;
  double crossover_eta = 30;
  double mutation_eta = 20;

  static void describe(auto& self, auto&& option) {
    detail::describe_nsga(self, option, "0: by the reference directions, at most as nsga2");
  }

  static constexpr bool multi_objective = true;

  detail::Indirect<detail::NsgaState> state_{};

  void prepare(const SearchSpace& space, const SearchContext& goal);
  Suggestion suggest(const Ask& ask);
  void observe(const Observation& o);
};

}  // namespace hypertune::inline v0
