// The state of GaussianProcess.
#pragma once

#include <hypertune/search/detail/gp/encoding.hpp>
#include <hypertune/search/detail/gp/history.hpp>
#include <hypertune/search/detail/gp/learner.hpp>
#include <hypertune/search/detail/gp/levels.hpp>
#include <hypertune/search/detail/sobol_sequence.hpp>
#include <hypertune/search/detail/ties.hpp>
#include <hypertune/search/detail/tried.hpp>
#include <hypertune/search/searcher.hpp>

#include <cstddef>
#include <optional>

namespace hypertune::inline v0::detail::gp {

struct Region {  // as in Eriksson et al., "TuRBO", NeurIPS 2019
  double length = 0.8;
  int successes = 0, failures = 0;
};

struct GaussianProcessState {
  std::optional<SearchSpace> space;
  SearchContext goal;
  Encoding encoding;
  SobolSequence sequence;
  Tried tried;
  Ties ties;
  History history;
  Region region;
  std::size_t epoch = 0;  // number of ended trials when the search restarted last
  double best = worst_loss;
  std::optional<std::size_t> center;  // the best of the ended trials, and the centre of the region
  Learner learner;                    // a cache, …
  LevelLearner level_learner;         // … and another one
};

}  // namespace hypertune::inline v0::detail::gp
