// CMA-ES: evolution of a normal distribution whose shape follows the landscape.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/search/detail/cma_state.hpp>
#include <hypertune/search/searcher.hpp>

#include <string>

namespace hypertune {

/// Covariance matrix adaptation (Hansen, "The CMA Evolution Strategy: A Tutorial", 2016, with active updates), for one
/// objective and spaces that are mostly numbers. Strong where dimensions interact or are scaled badly, and cheap: a
/// suggestion costs microseconds whatever has been observed.
///
/// - It begins with a scrambled Sobol design of three populations, or draws from the user's priors, and goes on around
///   the better third of it. Results known beforehand count as part of the design.
/// - Integers and ordinals keep a margin (Hamano et al. 2022); categories have distributions of their own, learnt from
///   the same ranks (as CatCMA, Hamano et al. 2024). Inactive parameters of conditional spaces are left alone.
/// - With more than 8 numeric dimensions and too few samples to learn all correlations, the separable form is used (Ros
///   and Hansen 2008).
/// - Asynchronous: suggestions beyond a generation come from the distribution as it is; it moves whenever a population
///   of results is there, whichever they are. Trials that fail rank last; ones that never return are not waited for.
/// - Trials that a scheduler stopped rank after the others, by steps, then loss; one that it has paused for long is
///   ranked by its last report. Learnt constraints come before losses (Deb 2000).
struct CmaEs {
  int population = 0;                         ///< results per generation, 4 or more; 0: by dimensions and parallelism
  double sigma = 0;                           ///< first standard deviation, as a part of the range, in (0, 1]; 0: 0.13
  CmaRestarts restarts = CmaRestarts::bipop;  ///< what follows convergence
  CmaShape shape = CmaShape::automatic;       ///< which correlations are learnt

  detail::CmaState state_{};

  void check() const {
    if (population != 0 && population < 4)
      fail(Errc::usage, "cma_es: a population of {} is too small: it must be 4 or more (0: chosen for you)",
           population);
    if (!(sigma >= 0 && sigma <= 1))
      fail(Errc::usage, "cma_es: sigma is {}, but is a part of the range, above 0 and at most 1 (0: chosen for you)",
           sigma);
  }
  void prepare(const SearchSpace& space, const SearchGoal& goal) {
    check();
    state_ = detail::CmaState(space, goal, {population, sigma, restarts, shape});
  }
  Suggestion suggest(const Ask& ask) { return state_.suggest(ask); }
  void observe(const Observation& o) {
    switch (o.kind) {
      case Observation::Kind::started: return state_.started(o.trial, o.point);
      case Observation::Kind::report: return state_.reported(o);
      case Observation::Kind::ended: return state_.ended(o);
    }
  }
  std::string name() const { return "cma_es"; }
};

}  // namespace hypertune
