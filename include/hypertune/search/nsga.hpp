// NSGA-II and NSGA-III: evolution for several objectives.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/search/detail/nsga_state.hpp>
#include <hypertune/search/searcher.hpp>

#include <string>

namespace hypertune {

namespace detail {

inline void check_evolution(const char* name, int population, double crossover, double mutation, double crossover_eta,
                            double mutation_eta) {
  if (population != 0 && population < 4)
    fail(Errc::usage, "{}: a population of {} is too small: it must be 4 or more (0: chosen for you)", name,
         population);
  if (!(crossover >= 0 && crossover <= 1))
    fail(Errc::usage, "{}: crossover is {}, but is a probability", name, crossover);
  if (!(mutation >= 0 && mutation <= 1)) fail(Errc::usage, "{}: mutation is {}, but is a probability", name, mutation);
  if (!(crossover_eta >= 0 && mutation_eta >= 0))
    fail(Errc::usage, "{}: the indices of crossover and mutation are {} and {}, but must not be negative", name,
         crossover_eta, mutation_eta);
}

}  // namespace detail

/// NSGA-II (Deb, Pratap, Agarwal, Meyarivan, "A Fast and Elitist Multiobjective Genetic Algorithm: NSGA-II", IEEE TEC
/// 6(2), 2002): nondominated sorting, crowding distance, simulated binary crossover and polynomial mutation in the unit
/// cube, uniform crossover of categories, and domination by learnt constraints first. For one objective it is plain
/// evolution. The population begins with a scrambled Sobol design, or draws from the user's priors.
///
/// In steady state (Durillo et al. 2009), so that parallel trials may end in any order: each result enters the
/// population at once and the worst leaves it; nothing waits for a trial that never returns. Failed trials never enter;
/// trials that a scheduler stopped are dominated by those that completed.
struct Nsga2 {
  static constexpr bool multi_objective = true;

  int population = 0;         ///< 4 or more; 0: a fifteenth of the samples, between 8 and 50
  double crossover = 0.9;     ///< probability that a child has two parents
  double mutation = 0;        ///< probability for each parameter; 0: one in the number of parameters
  double crossover_eta = 20;  ///< the larger, the nearer to a parent
  double mutation_eta = 20;   ///< the larger, the smaller the changes

  detail::NsgaState state_{};

  void check() const { detail::check_evolution("nsga2", population, crossover, mutation, crossover_eta, mutation_eta); }
  void prepare(const SearchSpace& space, const SearchGoal& goal) {
    check();
    state_ = detail::NsgaState(space, goal, {population, crossover, mutation, crossover_eta, mutation_eta, false});
  }
  Suggestion suggest(const Ask& ask) { return state_.suggest(ask); }
  void observe(const Observation& o) { state_.observe(o); }
  std::string name() const { return "nsga2"; }
};

/// NSGA-III (Deb and Jain, "An Evolutionary Many-Objective Optimization Algorithm Using Reference-Point-Based
/// Nondominated Sorting Approach", IEEE TEC 18(4), 2014): as Nsga2, but the population is kept even along reference
/// directions (Das and Dennis) instead of by crowding, which works for three and more objectives. Where the paper draws
/// lots in a niche, the one nearest to its direction is kept.
struct Nsga3 {
  static constexpr bool multi_objective = true;

  int population = 0;  ///< 4 or more; 0: as many as there are reference directions, up to what Nsga2 would take
  double crossover = 1;
  double mutation = 0;
  double crossover_eta = 30;
  double mutation_eta = 20;

  detail::NsgaState state_{};

  void check() const { detail::check_evolution("nsga3", population, crossover, mutation, crossover_eta, mutation_eta); }
  void prepare(const SearchSpace& space, const SearchGoal& goal) {
    check();
    state_ = detail::NsgaState(space, goal, {population, crossover, mutation, crossover_eta, mutation_eta, true});
  }
  Suggestion suggest(const Ask& ask) { return state_.suggest(ask); }
  void observe(const Observation& o) { state_.observe(o); }
  std::string name() const { return "nsga3"; }
};

}  // namespace hypertune
