// DEHB and BOHB: HyperBand whose trials are proposed by a model of each fidelity.
#pragma once

#include <hypertune/schedule/hyperband.hpp>
#include <hypertune/schedule/scheduler.hpp>
#include <hypertune/search/detail/dehb_state.hpp>
#include <hypertune/search/differential_evolution.hpp>
#include <hypertune/search/searcher.hpp>
#include <hypertune/search/tpe.hpp>

#include <string>

namespace hypertune {

/// The searcher of DEHB (Awad, Mallik, Hutter, "DEHB: Evolutionary Hyperband for Scalable, Robust and Efficient
/// Hyperparameter Optimization", IJCAI 2021): a population of differential evolution for each number of steps at which
/// HyperBand judges. Best by dehb(), which gives the scheduler too; `max` and `reduction` must be the scheduler's.
///
/// A trial starts at the first rung of its bracket and challenges the population there; its parents come from that
/// population and, while it has fewer than 4, from the best of the fidelities below. Where the paper evolves a new
/// configuration at each rung and trains it from its beginning, here a configuration goes on to the next rung from its
/// checkpoint, as HyperBand promotes it, and enters the population there: no step is trained twice. A population keeps
/// its best members instead of one in each place, as results come in any order.
struct Dehb {
  int max = 81;            ///< as HyperBand::max
  int reduction = 3;       ///< as HyperBand::reduction
  double weight = 0.5;     ///< of differences, in (0, 2]
  double crossover = 0.5;  ///< how many parameters of a child come from the mutant, in [0, 1]

  detail::DehbState state_{};

  void check() const {
    hyperband_brackets(max, reduction);
    detail::check_differential("dehb", 0, weight, crossover);
  }
  void prepare(const SearchSpace& space, const SearchGoal& goal) {
    check();
    state_ = detail::DehbState(space, goal, {max, reduction, weight, crossover});
  }
  Suggestion suggest(const Ask& ask) { return state_.suggest(ask); }
  void observe(const Observation& o) { state_.observe(o); }
  std::string name() const { return "dehb"; }
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
/// HyperBand whose trials TPE proposes, ranking by steps first, then by loss, so that the model is of the largest
/// number of steps that enough trials have come to. `max` steps, of which one in `reduction` trials go past a rung.
inline SearchAndSchedule bohb(int max = 81, int reduction = 3) {
  return {Tpe{}, HyperBand{.max = max, .reduction = reduction}};
}

/// DEHB: see Dehb.
inline SearchAndSchedule dehb(int max = 81, int reduction = 3) {
  return {Dehb{.max = max, .reduction = reduction}, HyperBand{.max = max, .reduction = reduction}};
}

}  // namespace hypertune
