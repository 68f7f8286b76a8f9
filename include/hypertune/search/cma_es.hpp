// CMA-ES: evolves a normal distribution whose shape adapts to the objective.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/detail/parts.hpp>
#include <hypertune/search/cma_kinds.hpp>
#include <hypertune/search/searcher.hpp>

namespace hypertune::inline v0 {

namespace detail {
class CmaState;
}

/// Covariance matrix adaptation (Hansen, "The CMA Evolution Strategy: A Tutorial", 2016, with active updates), for one
/// objective and spaces that are mostly numbers. Strong if dimensions interact or are badly scaled, and cheap: a
/// suggestion costs microseconds, independent of the number of observations.
///
/// - It begins with a scrambled Sobol design of three populations, or draws from the user's priors, and continues
///   around the better third of it. Results known beforehand count as part of the design.
/// - Integers and ordinals keep a margin (Hamano et al. 2022); categories have distributions of their own, learnt from
///   the same ranks (as CatCMA, Hamano et al. 2024). Inactive parameters of conditional spaces are left alone.
/// - With more than 8 numeric dimensions and too few samples to learn all correlations, the separable form is used (Ros
///   and Hansen 2008).
/// - Asynchronous: suggestions beyond a generation come from the present distribution, which is updated whenever a
///   population of results has arrived, whichever they are. Failed trials rank last. It does not wait for trials that
///   never return.
/// - Trials that a scheduler stopped rank after the others, by steps, then loss. A trial that has been paused for long
///   is ranked by its last report. Learnt constraints come before losses (Deb 2000).
struct CmaEs {
  static constexpr const char* type = "cma_es";
  static constexpr const char& part = include_hypertune_src_models_hpp_or_link_hypertune_hypertune;

  int population_size = 0;  ///< results in a generation, 4 or more; 0: by the number of dimensions
  double sigma0 = 0;        ///< the first standard deviation, as a part of the range, up to 1; 0: 0.13
  CmaRestarts restart_strategy = CmaRestarts::bipop;
  CmaShape shape = CmaShape::automatic;

  static void describe(auto& self, auto&& option) {
    option("population_size", self.population_size, at_least(4).or_zero(),
           "results in a generation; 0: by the dimensions");
    option("sigma0", self.sigma0, between(0, 1), "first standard deviation, as a part of the range; 0: 0.13");
    option("restart_strategy", self.restart_strategy, {"none", "ipop", "bipop"}, "what follows convergence");
    option("shape", self.shape, {"automatic", "full", "separable"}, "which correlations are learnt");
  }

  detail::Indirect<detail::CmaState> state_{};

  void prepare(const SearchSpace& space, const SearchContext& goal);
  Suggestion suggest(const Ask& ask);
  void observe(const Observation& o);
};

}  // namespace hypertune::inline v0
