// What evolutionary searchers share around their own way of breeding.
#pragma once

#include <hypertune/search/detail/genes.hpp>
#include <hypertune/search/detail/pending.hpp>
#include <hypertune/search/detail/tried.hpp>
#include <hypertune/search/searcher.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

inline constexpr int offspring_tries = 100;

/// The first child that the space allows, and that it has not had yet where its points can be counted. `make(i,
/// genome)` writes the genome of try number `i`; from the middle of the tries on it should no longer breed but draw
/// afresh, as a population in a corner may have no allowed child. When all fail: any allowed point. Of a finite space
/// what is left is asked for, and nothing when that is nothing.
template <class Make>
Suggestion offspring(const Genes& genes, const Tried& tried, Rng& rng, const Make& make) {
  constexpr int tries_for_new = 20;
  std::vector<double> genome = genes.blank();
  for (int i = 0; i < offspring_tries; ++i) {
    make(i, genome);
    Point point = genes.point(genome, rng);
    if (!genes.feasible(point)) continue;
    if (i < tries_for_new && genes.countable() && tried.contains(point)) continue;
    return genes.countable() ? tried.renewed(std::move(point), rng) : Suggestion(std::move(point));
  }
  return genes.countable() ? tried.renewed(genes.space().sample(rng), rng) : Suggestion(genes.space().sample(rng));
}

/// Follows trials that each enter the population by themselves: `take(Individual)` is called with each whose result
/// counts, at its end, or after `patience` further starts without one.
template <class Take>
void follow_trials(const Observation& o, const Genes& genes, Tried& tried, PendingTrials& pending,
                   std::uint64_t patience, const Take& take) {
  switch (o.kind) {
    case Observation::Kind::started:
      if (genes.countable()) tried.add(o.point);
      pending.start(o.trial, genes.genome(o.point), patience, take);
      break;
    case Observation::Kind::report: pending.report(o); break;
    case Observation::Kind::ended:
      if (auto individual = pending.end(o)) take(std::move(*individual));
      break;
  }
}

}  // namespace hypertune::inline v0::detail
