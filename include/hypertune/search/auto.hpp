// Auto: the searcher that fits the problem.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/detail/linkage.hpp>
#include <hypertune/search/searcher.hpp>

#include <cstdint>
#include <string>

namespace hypertune::inline v0 {

namespace detail {

struct AutoState;

enum class AutoChoice : std::uint8_t { random, gp, tpe, cma_es };

/// What fits a problem, by what is known before it begins.
AutoChoice auto_choice(const SearchSpace& space, const SearchContext& goal);

}  // namespace detail

/// Chooses by dimensions, types, budget and objectives, once, before the first trial: a Gaussian process for the usual
/// case (up to 60 dimensions and 2,000 trials); CMA-ES for larger problems of numbers alone; TPE for larger ones with
/// choices, conditions or several objectives. What was chosen stands in name().
///
/// The rules rest on benchmarks/quality: with up to 200 trials the Gaussian process was the best or among the best on
/// most problems, by orders of magnitude where they are smooth. Where it was not, its model did not fit what is
/// near the best (kinks, valleys at a bound, many small basins) or had written off a branch, and it brought nothing new
/// for many trials in a row. So while GaussianProcess::stagnant() says so, every other trial is TPE's, which assumes
/// less and has seen all results, too; as soon as either finds something better it is the model's turn again.
///
/// Where GaussianProcess::converged() says that a minimum was found, half of the trials go to another search of the
/// same kind, which begins with an even design of its own and knows of nothing else, so that it is not drawn to where
/// the first one is; the first has the rest while it finds further digits, then shares it with TPE. When the other one
/// is in a known minimum, or done with one that is worse, a new one begins, as CMA-ES does by restarts (Auger and
/// Hansen 2005) and TuRBO by new trust regions.
///
/// Suggestions take no longer than trials do (detail::AskBudget): where trials are so cheap that the model would be
/// what is waited for, it has its turn when its time has been earned, TPE the rest, and where even that takes longer
/// than trials the points are random.
///
/// Where most trials are cut short (by ASHA, say), every other trial is TPE's from the start, which ranks a trial by
/// how far it came, as in BOHB: what the model makes of the first steps may be far from the end.
struct Auto {
  static constexpr const char* type = "auto";

  detail::Indirect<detail::AutoState> state_{};

  void prepare(const SearchSpace& space, const SearchContext& goal);
  Suggestion suggest(const Ask& ask);
  void observe(const Observation& o);
  std::string name() const;
  bool cheap() const;
  static constexpr bool multi_objective = true;
};

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/search/impl/auto.hpp>
#endif
