// The common part of the evolutionary searchers, which differ in how they breed.
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

/// The first child that is feasible and, if the space is finite, has not been tried. `make(i, genome)` writes the
/// genome of attempt `i`. In the second half of the attempts it should not breed but draw afresh, as a population in a
/// corner may have no feasible child. If all attempts fail: any feasible point. In a finite space only untried points
/// are returned, and `exhausted` if there are none left.
template <class Make>
Suggestion offspring(const Genes& genes, const Tried& tried, Rng& rng, const Make& make) {
  constexpr int tries_for_new = 20;
  std::vector<double> genome = genes.blank();
  for (int i = 0; i < offspring_tries; ++i) {
    make(i, genome);
    Point point = genes.point(genome, rng);
    if (!genes.feasible(point)) continue;
    if (i < tries_for_new && genes.countable() && tried.contains(point)) continue;
    return genes.countable() ? tried.replaced_if_tried(std::move(point), rng) : Suggestion(std::move(point));
  }
  return genes.countable() ? tried.replaced_if_tried(genes.space().sample(rng), rng)
                           : Suggestion(genes.space().sample(rng));
}

/// Follows trials that enter the population independently of each other. `take(Individual)` is called for each trial at
/// its end, or after `patience` trials have started since its last report.
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
