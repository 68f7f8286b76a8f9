// Pb2: population based bandits.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/detail/parts.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {
struct Pb2State;
}

/// Population based bandits (Parker-Holder et al., "Provably Efficient Online Hyperparameter Optimization with
/// Population-Based Bandits", NeurIPS 2020). Like Pbt with truncation selection, but the configuration with which a
/// trial continues is not a perturbation: it maximises an upper confidence bound of a time-varying Gaussian process,
/// which models the gain of a configuration within an interval and learns from all trials. Best for small populations,
/// in which random perturbations seldom find a good configuration. While fewer than four intervals are known,
/// configurations are drawn at random.
///
/// Comparisons and waiting are as with Pbt.
///
/// Unordered choices are taken over from the donor (PB2 is for numbers). `mutate` names the parameters that may change.
/// The model uses the last `history` intervals of all trials together: a decision costs O(history^3), about 2 ms for
/// 100.
struct Pb2 {
  static constexpr const char* type = "pb2";
  static constexpr const char& part = include_hypertune_src_schedulers_hpp_or_link_hypertune_hypertune;

  int perturbation_interval = 4;         ///< steps from one comparison to the next
  int max_steps = 100;                   ///< steps after which a trial is complete
  double quantile_fraction = 0.25;       ///< above 0, at most 0.5: the part of the trials that is good, or bad
  double width = 1;                      ///< of the confidence bound, in standard deviations
  int history = 100;                     ///< 4 or more: intervals that the model learns from, the latest
  int population_size = 0;               ///< trials that train at a time; 0: all samples
  bool synchronous = false;              ///< a trial waits at a comparison for all others
  std::vector<std::string> mutate = {};  ///< names of the parameters that may change; empty: all

  static void describe(auto& self, auto&& option) {
    option("perturbation_interval", self.perturbation_interval, at_least(1), "steps from one comparison to the next");
    option("max_steps", self.max_steps, at_least(1), "steps after which a trial is complete");
    option("quantile_fraction", self.quantile_fraction, above(0).at_most(0.5),
           "the fraction of the trials that counts as good, and as bad");
    option("width", self.width, at_least(0), "of the confidence bound, in standard deviations");
    option("history", self.history, at_least(4), "intervals that the model learns from");
    option("population_size", self.population_size, at_least(0), "trials that train at a time; 0: all samples");
    option("synchronous", self.synchronous, "all wait for one another at each comparison");
    option("mutate", self.mutate, "parameters that may change; without: all");
  }

  detail::Indirect<detail::Pb2State> state_{};

  static constexpr bool exploits = true;

  void prepare(const SearchSpace& space, std::uint64_t seed);
  void on_create(TrialId trial, const Point& point);
  Decision on_report(const Progress& progress);
  void on_pause(TrialId trial);
  void on_exploit(TrialId trial, TrialId donor, const Point& point, int steps);
  void on_resume(TrialId trial);
  void on_end(TrialId trial, TrialState);
  bool may_give(TrialId trial, int steps) const;
  Choice choose_next(const Pool& pool) const;
};

}  // namespace hypertune::inline v0
