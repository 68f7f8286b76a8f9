// GaussianProcess: Bayesian optimisation, for trials that take much longer than a few milliseconds.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/detail/parts.hpp>
#include <hypertune/search/searcher.hpp>

#include <cstddef>
#include <optional>
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

/// Bayesian optimisation with a Gaussian process: it suggests the configuration with the greatest expected improvement
/// under a model of the losses. The best searcher for few (10 to 500), expensive trials. It supports mixed and
/// conditional spaces, constraints between parameters, learnt constraints, the user's priors, stopped and paused
/// trials, pending trials (assumed to return the model's expectation), and several objectives (a random scalarisation
/// for each suggestion: Knowles, "ParEGO", 2006).
///
/// Under a scheduler that stops or pauses trials, the model is a chain of levels of steps (detail::gp::Chain): the loss
/// at a level is modelled as the loss at the level below plus a difference. The value of a suggestion is the
/// improvement at the highest level that enough trials have reached, times the probability that the scheduler lets the
/// trial reach it.
///
/// The model: Matern 5/2 with a lengthscale per dimension, under a prior that scales with the dimension (Hvarfner et
/// al. 2024), and learnt noise. Unless a scheduler stops trials early, it also has a direction across the dimensions
/// along which losses change, a quadratic trend, and warped inputs (Snoek et al. 2014), each only if the data support
/// it (gp/fit.hpp). Losses are transformed by the power transform with the greatest evidence (after HEBO, Cowen-Rivers
/// et al. 2022). The acquisition is log expected improvement (Ament et al. 2023). With more than `max_observations`
/// observations it becomes a search in a trust region (Eriksson et al., "TuRBO", 2019), modelled by the most
/// informative `max_observations` of them, so that a suggestion takes the same time after 10,000 trials as after 300:
/// some 10 ms in 10 dimensions.
///
/// No configuration is tried twice, even with noise (see repeat()). A finite space is exhausted when all was tried.
struct GaussianProcess {
  static constexpr const char* type = "gp";
  static constexpr const char& part = include_hypertune_src_models_hpp_or_link_hypertune_hypertune;

  int startup_trials = 0;       ///< trials before the model is asked; 0: by the number of dimensions
  int max_observations = 250;   ///< 20 or more: observations that the model learns from at most
  double prior_confidence = 0;  ///< trials after which data outweigh the user's priors; 0: at least 10

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

  /// Whether the last trials improved the best loss by less than the part `counts` of the spread of losses. Then either
  /// a minimum was found, or the model does not fit the neighbourhood of the best. False with several objectives.
  bool stagnant(double counts = 1e-5) const;
  /// Whether the search stagnates because it has found a minimum. Never true for noisy results.
  bool converged() const;
  /// Whether the search has converged and the last digits of its minimum can still be improved, according to a
  /// quadratic through the trials nearest to it.
  bool can_polish() const { return polished_features().has_value(); }
  /// The best trial since the search (re)started; null before a trial has ended.
  const Record* best() const;
  /// Whether the next suggestion needs no model: it belongs to the design that the search begins with.
  bool quick() const;
  /// Whether a trial at this point has started before.
  bool tried(const Point& point) const;

  static constexpr bool multi_objective = true;

 private:
  using Model = detail::gp::Model;
  using Hyper = detail::gp::Hyper;

  Suggestion proposed(Rng& rng);
  std::size_t startup_count() const;
  bool starts() const;

  // The initial design lasts until all trials together have made the steps of startup_count() full runs: trials stopped
  // early are cheap and tell little, and a bar set by few trials would stop trials that start slowly.
  bool starts_by_levels() const;

  // A point of the space-filling design, or drawn from the user's prior.
  Suggestion initial(Rng& rng) const;
  std::optional<std::vector<double>> polished_features() const;
  std::optional<Point> polished_minimum(Rng& rng) const;

  // The trust region grows with success and shrinks without. When it is tiny the search restarts.
  void adapt(const Record& record);

  // Whether the point lies in the region in most dimensions: the region is wide in unimportant ones.
  bool within_region(const std::vector<double>& features) const;
  detail::gp::Source source() const;

  /// The model and the trials that it was fitted to.
  struct Knowledge;

  /// The model of the ended trials, if all of them completed.
  std::optional<Knowledge> of_ends(const detail::gp::Data& all, std::size_t count);

  /// The model of all trials with a report, if some were stopped or are paused.
  std::optional<Knowledge> of_levels(Rng& rng);

  /// Whether trials were stopped early, or are paused, so that it matters how many steps each has made.
  bool has_partial_trials() const;
  Suggestion model_based(Rng& rng);

  // Where trials are running, with a radius: a tenth of the distance from there to the nearest ended trial. A point
  // within the radius would add little information. The model alone does not keep such points apart if it is certain of
  // its expectations.
  struct Place;
  std::vector<Place> pending_places() const;

  // Adds a pending trial with the model's expectation. A duplicate is left out: it would only be taken for noise.
  static void add_pending(Model& model, const std::vector<double>& features);
  detail::gp::Box box(std::size_t count, const Hyper& hyper) const;
};

}  // namespace hypertune::inline v0
