// GaussianProcess: Bayesian optimisation, for trials that cost much more than a few milliseconds.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/detail/linkage.hpp>
#include <hypertune/search/searcher.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail::gp {
struct Box;
struct Data;
struct GaussianProcessState;
struct Hyper;
class Model;
struct Record;
struct Source;
}  // namespace detail::gp

/// Bayesian optimisation with a Gaussian process: the next configuration is the one of the greatest expected
/// improvement under a model of the losses. The searcher of choice for few (10 to 500), expensive trials. It reads:
/// mixed and conditional spaces, constraints between parameters, learnt constraints, the user's priors, trials stopped
/// early and paused ones, pending trials (believed to return what the model expects), several objectives (a random
/// scalarisation for each suggestion: Knowles, "ParEGO", 2006).
///
/// Under a scheduler that stops or pauses trials, the model is a chain of levels of steps (detail::gp::Chain): what a
/// trial's loss is further on is learnt as what it was before, and a difference. A suggestion is worth the improvement
/// at the highest level that enough trials came to, times the probability that the scheduler lets it come so far.
///
/// The model: Matern 5/2 with a lengthscale per dimension under a prior that scales with the dimension (Hvarfner et al.
/// 2024) and learnt noise; unless a scheduler cuts trials short, with a direction across the dimensions along which
/// losses change, a quadratic trend and warped inputs (Snoek et al. 2014), each where the data speak for it
/// (gp/fit.hpp); losses bent by the power transform of the
/// greatest evidence (after HEBO, Cowen-Rivers et al. 2022); log expected improvement (Ament et al. 2023). With more
/// than `max_observations` observations it becomes a search in a trust region (Eriksson et al., "TuRBO", 2019),
/// modelled by the `max_observations` most telling of them, so that a suggestion costs the same after 10,000 trials as
/// after 300: some 10 ms in 10 dimensions.
///
/// No configuration is tried twice, noise or not (see repeat()); a finite space is exhausted when all has been tried.
struct GaussianProcess {
  static constexpr const char* type = "gp";

  int startup_trials = 0;
  int max_observations = 250;
  double prior_confidence = 0;

  static void describe(auto& self, auto&& option) {
    option("startup_trials", self.startup_trials, at_least(0),
           "trials before the model is asked; 0: by the dimensions");
    option("max_observations", self.max_observations, at_least(20), "observations that the model sees at most");
    option("prior_confidence", self.prior_confidence, at_least(0),
           "trials after which data outweigh priors; 0: at least 10");
  }

  using Record = detail::gp::Record;

  detail::Indirect<detail::gp::GaussianProcessState> state_{};

  void prepare(const SearchSpace& space, const SearchContext& goal);
  void observe(const Observation& o);
  Suggestion suggest(const Ask& ask);

  /// Whether the last trials brought nothing that counts beside the differences there are (the part `counts` of them):
  /// either a minimum is found, or the model does not fit what is near the best. False with several objectives.
  bool stagnant(double counts = 1e-5) const;
  /// Whether the search stagnates because a minimum is found. Never so where results are noisy.
  bool converged() const;
  /// Whether the search has converged and the last digits of its minimum are still to be found: so says a quadratic
  /// through what is near it.
  bool polishes() const { return polished_features().has_value(); }
  /// The best trial since the search began (anew); null before one has ended.
  const Record* best() const;
  /// Whether a trial at this point has started before.
  bool tried(const Point& point) const;

  static constexpr bool multi_objective = true;

 private:
  using Model = detail::gp::Model;
  using Hyper = detail::gp::Hyper;

  Suggestion proposed(Rng& rng);
  std::size_t startup_count() const;
  bool starts() const;

  // As many steps as that many full runs have: trials that are stopped soon are cheap, tell little each, and a bar that
  // is set by few of them would keep out what begins slowly.
  bool starts_by_levels() const;

  // Evenly over the space, or over what the user believes.
  Suggestion initial(Rng& rng) const;
  std::optional<std::vector<double>> polished_features() const;
  std::optional<Point> polished(Rng& rng) const;

  // The trust region grows with success and shrinks without; when it is tiny the search begins anew.
  void adapt(const Record& record);

  // In most dimensions: the region is wide in those that hardly matter.
  bool within_region(const std::vector<double>& features) const;
  detail::gp::Source source() const;

  /// What the model knows: itself, and the trials that it rests on.
  struct Knowledge;

  /// Of the trials that have ended, all of which are complete.
  std::optional<Knowledge> of_ends(const detail::gp::Data& all, std::size_t count);

  /// Of all trials with a report, where some did not go all the way.
  std::optional<Knowledge> of_levels(Rng& rng);

  /// Some trials were stopped before their end, or wait on the way to it, so that it matters how far each came.
  bool staged() const;
  Suggestion model_based(Rng& rng);

  // Where trials are under way: another that is nearer to one than a tenth of what that is from all that has ended
  // would tell little beside it. The model alone does not keep them apart where it takes its expectations for certain.
  struct Place;
  std::vector<Place> pending_places() const;

  // The model would take a duplicate only for noise.
  static void believe(Model& model, const std::vector<double>& features);
  detail::gp::Box box(std::size_t count, const Hyper& hyper) const;
};

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/search/impl/gaussian_process.hpp>
#endif
