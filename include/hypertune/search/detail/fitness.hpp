// Compares the outcomes of trials, for searchers that rank.
#pragma once

#include <hypertune/search/searcher.hpp>

#include <cmath>
#include <cstddef>
#include <vector>

namespace hypertune::inline v0::detail {

/// A trial's outcome as a population-based searcher keeps it. Failed trials are the worst; then those that violate
/// learnt constraints, by the total violation (Deb 2000; an unknown one counts as infinitely violated); then those that
/// a scheduler stopped, the more steps the better (as in BOHB: they lost at a later rung); then the losses decide.
struct Fitness {
  std::vector<double> losses;
  double violation = 0;
  int steps = 0;
  bool stopped = false;
  bool failed = false;

  Fitness() = default;
  explicit Fitness(const Observation& o)
      : losses(o.losses.begin(), o.losses.end()),
        steps(o.steps),
        stopped(o.kind != Observation::Kind::ended || o.state == TrialState::stopped),
        failed(o.losses.empty() || (o.kind == Observation::Kind::ended && o.state == TrialState::failed)) {
    for (double& loss : losses)
      if (std::isnan(loss)) loss = worst_loss;
    for (const double c : o.constraints) violation += std::isnan(c) ? worst_loss : c > 0 ? c : 0;
  }

  double loss() const { return losses.empty() ? worst_loss : losses.front(); }

  /// Negative if this one is better whatever the losses are, positive if `other` is, 0 if the losses decide.
  int class_against(const Fitness& other) const {
    if (failed != other.failed) return failed ? 1 : -1;
    if (failed) return 0;
    if (violation != other.violation) return violation < other.violation ? -1 : 1;
    if (stopped != other.stopped) return stopped ? 1 : -1;
    if (stopped && steps != other.steps) return steps > other.steps ? -1 : 1;
    return 0;
  }
};

/// The order for one objective. Neither of two equally good ones is fitter.
inline bool fitter(const Fitness& a, const Fitness& b) {
  if (const int c = a.class_against(b); c != 0) return c < 0;
  return !a.failed && a.loss() < b.loss();
}

/// Constrained domination (Deb et al. 2002): a better class, or at least as good in all losses and better in one.
inline bool dominates(const Fitness& a, const Fitness& b) {
  if (const int c = a.class_against(b); c != 0) return c < 0;
  if (a.failed) return false;
  bool better = false;
  for (std::size_t k = 0; k < a.losses.size() && k < b.losses.size(); ++k) {
    if (a.losses[k] > b.losses[k]) return false;
    better = better || a.losses[k] < b.losses[k];
  }
  return better;
}

}  // namespace hypertune::inline v0::detail
