// TpeState: the state of Tpe.
#pragma once

#include <hypertune/search/detail/parzen.hpp>
#include <hypertune/search/detail/sobol_sequence.hpp>
#include <hypertune/search/detail/ties.hpp>
#include <hypertune/search/detail/trial_ranking.hpp>
#include <hypertune/search/detail/tried.hpp>
#include <hypertune/search/searcher.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

namespace hypertune::inline v0::detail {

/// Two densities: of the good trials and of the others.
struct ParzenPair {
  ParzenEstimator good, bad;
  double share = 0;  // of the good trials among all
};

struct TpeState {
  std::optional<SearchSpace> space;
  SearchContext goal;
  ParzenSpace model;
  TrialRanking trials;
  std::vector<double> rows;  // model coordinates, by slot
  SobolSequence sobol;
  std::vector<std::size_t> sobol_dimensions;
  Ties ties;
  Tried tried;                             // configurations, …
  std::unordered_set<std::uint64_t> seen;  // … and hashes of their rows
  std::vector<std::size_t> gates;          // dimensions of the model whose values activate branches
  bool constrained = false;
};

/// The part of a space in which one dimension of the model has one value.
struct TpeBranch {
  std::size_t gate = 0;
  double value = 0;
};

}  // namespace hypertune::inline v0::detail
