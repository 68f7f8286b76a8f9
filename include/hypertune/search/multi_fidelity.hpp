// DEHB and BOHB: HyperBand with trials proposed by a model of each fidelity.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/detail/parts.hpp>
#include <hypertune/schedule/hyperband.hpp>
#include <hypertune/schedule/scheduler.hpp>
#include <hypertune/search/searcher.hpp>

namespace hypertune::inline v0 {

namespace detail {
class DehbState;
}

/// The searcher of DEHB (Awad, Mallik, Hutter, "DEHB: Evolutionary Hyperband for Scalable, Robust and Efficient
/// Hyperparameter Optimization", IJCAI 2021): a population of differential evolution for each number of steps at which
/// HyperBand compares trials. Best created by dehb(), which makes the scheduler too; `max_steps` and `reduction_factor`
/// must equal the scheduler's.
///
/// A trial starts at the first rung of its bracket and challenges the population there. Its parents come from that
/// population and, while it has fewer than 4 members, from the best of the fidelities below. The paper evolves a new
/// configuration at each rung and trains it from the beginning. Here a configuration continues to the next rung from
/// its checkpoint when HyperBand promotes it, and enters the population there: no step is trained twice. A population
/// keeps its best members instead of one per place, as results come in any order.
struct Dehb {
  static constexpr const char* type = "dehb";
  static constexpr const char& part = include_hypertune_src_schedulers_hpp_or_link_hypertune_hypertune;

  int max_steps = 81;                  ///< steps after which a trial is complete
  int reduction_factor = 3;            ///< 2 or more: one in this many trials passes each rung
  double mutation_factor = 0.5;        ///< above 0, at most 2: of the difference that is added
  double crossover_probability = 0.5;  ///< of a parameter to come from the mutant

  static void describe(auto& self, auto&& option) {
    option("max_steps", self.max_steps, at_least(1), "steps after which a trial is complete");
    option("reduction_factor", self.reduction_factor, at_least(2), "one in this many trials passes each rung");
    option("mutation_factor", self.mutation_factor, above(0).at_most(2), "of differences");
    option("crossover_probability", self.crossover_probability, between(0, 1),
           "of a parameter to come from the mutant");
  }

  detail::Indirect<detail::DehbState> state_{};

  void prepare(const SearchSpace& space, const SearchContext& goal);
  Suggestion suggest(const Ask& ask);
  void observe(const Observation& o);
};

/// A searcher and the scheduler that belongs to it:
/// ```cpp
/// auto [search, schedule] = ht::bohb(81, 3);
/// ht::tune(space, train, {.samples = 143, .search = search, .schedule = schedule});
/// ```
struct SearchAndSchedule {
  AnySearcher search;
  AnyScheduler schedule;
};

/// BOHB (Falkner, Klein, Hutter, "BOHB: Robust and Efficient Hyperparameter Optimization at Scale", ICML 2018):
/// HyperBand with trials proposed by TPE, which ranks by steps first, then by loss, so that it models the largest
/// number of steps that enough trials have reached. Trials make at most `max_steps` steps; one in `reduction_factor`
/// passes a rung.
SearchAndSchedule bohb(int max_steps = 81, int reduction_factor = 3);

/// DEHB: see Dehb.
SearchAndSchedule dehb(int max_steps = 81, int reduction_factor = 3);

}  // namespace hypertune::inline v0
