// Tpe: tree-structured Parzen estimator.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/search/searcher.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {
struct ParzenPair;
struct TpeBranch;
struct TpeState;
}  // namespace detail

/// Multivariate TPE: the trials are split into good ones and others, and a density over the space is fitted to each
/// set. Of many draws from the density of the good ones, it suggests the one with the largest ratio of the two
/// densities. It handles all kinds of spaces (conditions, choices, integers, constraints), noise, many parallel trials,
/// and thousands of trials, at under a millisecond per suggestion.
///
/// Bergstra, Bardenet, Bengio and Kégl, "Algorithms for Hyper-Parameter Optimization", NeurIPS 2011; joint kernels over
/// all dimensions as in BOHB (Falkner, Klein and Hutter, ICML 2018); weights by expected improvement, bounded
/// bandwidths and the categorical kernel after Watanabe, "Tree-Structured Parzen Estimator: Understanding Its Algorithm
/// Components and Their Roles", 2023. Differences to these: the bandwidths of good trials follow their spread, so that
/// the search narrows; those of the others are distances to neighbours and never narrow; candidates recombine good
/// trials; the best candidate is refined.
/// - The dimensions of a branch are modelled together with the choice that activates it, in one density. Now and then a
///   branch with worse results is tried at its own best region, as it may only have been unlucky.
/// - Running trials count among the others (a constant liar), so that parallel trials keep apart.
/// - Trials that a scheduler stopped, or that still run, count by (steps, loss): with Asha or HyperBand this is BOHB.
/// - Constraints on metrics are learnt: c-TPE (Watanabe and Hutter, IJCAI 2023), one pair of densities each.
/// - Several objectives: MOTPE (Ozaki et al., JAIR 2022), nondomination rank and hypervolume subset selection.
/// - The user's priors (Dim::prior) weigh the choice and are sampled from, less with each result, as in piBO
///   (Hvarfner et al., ICLR 2022).
/// No configuration is tried twice, even with noise (see repeat()). A finite space is exhausted when all was tried.
struct Tpe {
  static constexpr const char* type = "tpe";

  int startup_trials = 0;     ///< trials before the model is asked; 0: 10, or fewer if there are few samples
  double gamma = 0.1;         ///< above 0 and below 1: the part of the trials that counts as good …
  int max_good = 25;          ///< … but never more trials than this
  int ei_candidates = 48;     ///< draws that are compared for each suggestion
  double prior_strength = 5;  ///< trials after which the user's priors count half; 0: they do not count

  static void describe(auto& self, auto&& option) {
    option("startup_trials", self.startup_trials, at_least(0),
           "trials before the model is asked; 0: 10, fewer of few samples");
    option("gamma", self.gamma, above(0).below(1), "the part of the trials that are good");
    option("max_good", self.max_good, at_least(1), "the most trials that count as good");
    option("ei_candidates", self.ei_candidates, at_least(1), "draws that are compared for each suggestion");
    option("prior_strength", self.prior_strength, at_least(0), "trials after which priors count half; 0: not at all");
  }

  detail::Indirect<detail::TpeState> state_{};

  void prepare(const SearchSpace& space, const SearchContext& goal);
  Suggestion suggest(const Ask& ask) const;
  void observe(const Observation& o);
  bool quick() const;
  static constexpr bool multi_objective = true;

 private:
  std::size_t startup_count() const;
  Suggestion proposed(Rng& rng) const;
  Point startup_point(Rng& rng) const;
  Point point(std::span<const double> row, Rng& rng) const;
  const double* row(std::size_t slot) const;
  std::optional<detail::TpeBranch> other_branch(Rng& rng) const;
  bool fit_objective(detail::ParzenPair& pair, const std::optional<detail::TpeBranch>& branch) const;
  bool fit_constraint(std::size_t constraint, detail::ParzenPair& pair) const;
  void fit(detail::ParzenPair& pair, const std::vector<const double*>& good, const std::vector<double>& good_weights,
           const std::vector<const double*>& bad, const std::vector<double>& bad_weights) const;
};

}  // namespace hypertune::inline v0
