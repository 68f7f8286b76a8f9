// Auto: chooses a searcher that fits the problem.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/search/searcher.hpp>

#include <cstdint>
#include <string>

namespace hypertune::inline v0 {

namespace detail {

struct AutoState;

enum class AutoChoice : std::uint8_t { random, gp, tpe, cma_es };

/// The searcher that fits a problem, judged by what is known before the first trial.
AutoChoice auto_choice(const SearchSpace& space, const SearchContext& goal);

}  // namespace detail

/// Chooses once, before the first trial, by dimensions, types, budget and objectives: a Gaussian process for the usual
/// case (up to 60 dimensions and 2,000 trials); CMA-ES for larger problems with numbers only; TPE for larger ones with
/// choices, conditions or several objectives. name() tells the choice.
///
/// The rules come from benchmarks/quality: with up to 200 trials the Gaussian process was the best or among the best on
/// most problems, by orders of magnitude on smooth ones. Where it was not, its model did not fit the neighbourhood of
/// the best points (kinks, valleys at a bound, many small basins) or had given up a branch, and it found nothing new
/// for many trials in a row. So while GaussianProcess::stagnant() is true, every other trial comes from TPE, which
/// assumes less and has seen all results too. As soon as either finds an improvement, the Gaussian process continues
/// alone.
///
/// When GaussianProcess::converged() says that a minimum was found, half of the trials go to a second search of the
/// same kind. It begins with a space-filling design of its own and knows no earlier results, so that it is not drawn to
/// the same minimum. The first search gets the other half while it finds further digits, then shares it with TPE. When
/// the second search is in a known minimum, or has finished with a worse one, a new one begins, as CMA-ES does by
/// restarts (Auger and Hansen 2005) and TuRBO by new trust regions.
///
/// Suggestions take no longer than trials do (detail::AskBudget). If trials are so cheap that they would wait for the
/// model, the model is used only as often as its time budget allows, and TPE otherwise. If even TPE takes much longer
/// than the trials (in spaces of many dimensions), some points are random. Ordered and inline runs are not limited.
///
/// If most trials are stopped early (by ASHA, for example), every other trial comes from TPE from the start, which
/// ranks a trial by its number of steps, as in BOHB: what the model predicts from the first steps may be far from the
/// end.
struct Auto {
  static constexpr const char* type = "auto";

  detail::Indirect<detail::AutoState> state_{};

  void prepare(const SearchSpace& space, const SearchContext& goal);
  Suggestion suggest(const Ask& ask);
  void observe(const Observation& o);
  std::string name() const;
  bool cheap() const;
  bool quick() const;
  static constexpr bool multi_objective = true;
};

}  // namespace hypertune::inline v0
