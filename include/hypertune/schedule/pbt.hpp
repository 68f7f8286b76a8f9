// Pbt: population based training.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/schedule/explore.hpp>
#include <hypertune/schedule/population.hpp>
#include <hypertune/schedule/scheduler.hpp>
#include <hypertune/schedule/welch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

/// Population based training (Jaderberg et al., "Population Based Training of Neural Networks", 2017). All trials form
/// a population and train side by side; every `perturbation_interval` steps each is saved and compared with the others
/// by its last loss. A bad one takes over the state of a good one (exploit) and goes on with its configuration, changed
/// a little (explore). A configuration so becomes a schedule: see Results::schedule() and Replay.
///
/// Trials are compared at like steps: one that has paused is judged by what the others were after as many steps, and
/// takes over the state that a donor saved there. So it does not matter how many slots there are: with fewer than
/// trials the one with the fewest steps goes on first, and a paused one costs a checkpoint and no slot. It goes on when
/// three of four have come there; those that are more than an interval behind are not waited for. `synchronous` waits
/// for all. What the best saved at a comparison is kept until all have had it, but not for those that are far behind:
/// they train on as they are. Trials must save their state (with those that cannot nothing is ever exploited, and each
/// is told of).
///
/// Exploit: by `truncation` a trial in the worst `quantile_fraction` of the population takes over one of the best
/// `quantile_fraction`, chosen by chance. By `t_test` a trial takes over another one, chosen by chance, whose last
/// `window` losses are lower by Welch's t-test at 5 %. A donor has always saved what it is judged by.
///
/// Explore: each of the dimensions in `mutate` (all, where that is empty) is drawn anew with probability
/// `resample_probability`, else multiplied by `perturbation_factor` or by 2 - factor: 1.2 or 0.8. Whole numbers move by
/// 1 at least, ordered choices to a neighbour, unordered ones only when drawn anew; the space's conditions and
/// constraints hold.
///
/// A report costs O(log n), a decision O(n log n) in the size of the population.
struct Pbt {
  static constexpr const char* type = "pbt";

  enum class Exploit : std::uint8_t { truncation, t_test };

  int perturbation_interval = 4;
  int max_steps = 100;
  double quantile_fraction = 0.25;
  double resample_probability = 0.25;
  double perturbation_factor = 1.2;
  Exploit exploit = Exploit::truncation;
  int window = 10;
  int burn_in_period = 0;
  int population_size = 0;
  bool synchronous = false;
  std::vector<std::string> mutate = {};

  static void describe(auto& self, auto&& option) {
    option("perturbation_interval", self.perturbation_interval, at_least(1), "steps from one comparison to the next");
    option("max_steps", self.max_steps, at_least(1), "steps after which a trial is complete");
    option("quantile_fraction", self.quantile_fraction, above(0).at_most(0.5), "what counts as good, and as bad");
    option("resample_probability", self.resample_probability, between(0, 1), "that a value is drawn anew");
    option("perturbation_factor", self.perturbation_factor, above(1).below(2),
           "values are multiplied by this, or by 2 less this");
    option("exploit", self.exploit, {"truncation", "t_test"}, "the worst part exploit the best, or by a test of two");
    option("window", self.window, at_least(2), "reports that the t-test looks at");
    option("burn_in_period", self.burn_in_period, at_least(0), "steps before a trial's first exploitation");
    option("population_size", self.population_size, at_least(0), "trials that train at a time; 0: all samples");
    option("synchronous", self.synchronous, "all wait for one another at each comparison");
    option("mutate", self.mutate, "parameters that may change; without: all");
  }

  detail::Population state_{};
  std::optional<SearchSpace> space_{};
  std::vector<std::size_t> dimensions_{};
  std::uint64_t seed_ = 0;

  static constexpr bool exploits = true;

  void prepare(const SearchSpace& space, std::uint64_t seed);
  void on_create(TrialId trial, const Point& point) { state_.create(trial, point); }
  Decision on_report(const Progress& progress);
  void on_pause(TrialId trial) { state_.pause(trial); }
  void on_exploit(TrialId trial, TrialId donor, const Point& point, int steps) {
    state_.exploit(trial, donor, point, steps, perturbation_interval);
  }
  void on_resume(TrialId trial) { state_.resume(trial); }
  void on_end(TrialId trial, TrialState) { state_.end(trial); }

  bool may_give(TrialId trial, int steps) const {
    return state_.may_give(trial, steps, exploit == Exploit::truncation ? quantile_fraction : 1, perturbation_interval);
  }

  Choice choose_next(const Pool& pool) const;

 private:
  std::optional<TrialId> by_test(TrialId trial, Rng& rng) const;
};

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/schedule/impl/pbt.hpp>
#endif
