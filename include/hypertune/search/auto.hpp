// Auto: the searcher that fits the problem.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/random.hpp>
#include <hypertune/search/cma_es.hpp>
#include <hypertune/search/detail/ask_budget.hpp>
#include <hypertune/search/detail/tried.hpp>
#include <hypertune/search/gaussian_process.hpp>
#include <hypertune/search/random.hpp>
#include <hypertune/search/searcher.hpp>
#include <hypertune/search/tpe.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

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

  std::optional<AnySearcher> chosen_{};
  std::optional<GaussianProcess> gp_{};  // instead of chosen_: this and …
  std::optional<Tpe> tpe_{};             // … this
  std::optional<SearchSpace> space_{};
  SearchContext goal_{};
  std::optional<GaussianProcess> other_{};     // for other minima
  std::set<TrialId> others_{};                 // its trials that are under way
  std::vector<std::vector<double>> minima_{};  // where a search has ended
  std::size_t others_begun_ = 0;
  std::size_t started_ = 0, parallelism_ = 1;
  std::map<TrialId, int> steps_{};  // that each trial has done, by what it reported
  detail::AskBudget budget_{};
  detail::Tried tried_{};
  bool finite_ = false;
  std::size_t dimensions_ = 0, ended_ = 0;

  void prepare(const SearchSpace& space, const SearchContext& goal);
  Suggestion suggest(const Ask& ask);
  void observe(const Observation& o);
  std::string name() const {
    return gp_ ? "auto: gp" : tpe_ ? "auto: tpe" : chosen_ ? "auto: " + chosen_->name() : "auto";
  }
  bool cheap() const { return chosen_ && chosen_->cheap(); }
  static constexpr bool multi_objective = true;

  enum class Means : std::uint8_t { all, tpe, random };
  /// What the next suggestion may be made by.
  Means means() const {
    if (gp_ && budget_.affords(cost(Means::all))) return Means::all;
    return budget_.affords(cost(Means::tpe)) ? Means::tpe : Means::random;
  }
  Seconds cost(Means by) const;

  enum class Turn : std::uint8_t { gp, tpe, found, other };
  /// Whose turn the next trial is; `found`: the first one's or TPE's, once there is a minimum.
  Turn turn() const;
  GaussianProcess next_other() const;
  void begin_other();
  /// Whether the search for other minima came to one that is known, or to the end of one that is worse.
  bool done() const;
  bool known(const std::vector<double>& features) const;
  bool near(const std::vector<double>& a, const std::vector<double>& b) const;

  /// Whether most trials did not come half as far as the one that came farthest. The newest ones do not count: they may
  /// be on their way.
  bool cut_short() const;
};

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/search/impl/auto.hpp>
#endif
