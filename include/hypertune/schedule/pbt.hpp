// Pbt: population based training.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/detail/parts.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {
struct PbtState;
}

/// Population based training (Jaderberg et al., "Population Based Training of Neural Networks", 2017). All trials form
/// a population and train side by side. Every `perturbation_interval` steps a trial is saved and compared with the
/// others by its last loss. A bad trial takes over the state of a good one (exploit) and continues with its
/// configuration, slightly changed (explore). In this way a configuration becomes a schedule: see Results::schedule()
/// and Replay.
///
/// Trials are compared at equal steps: a paused trial is compared with what the others were after as many steps, and
/// takes over the state that a donor saved there. So the number of slots does not matter: if there are fewer slots than
/// trials, the trial with the fewest steps continues first, and a paused trial needs a checkpoint but no slot. It
/// continues when three quarters of the others have reached its steps, not counting those that are more than an
/// interval behind. `synchronous` waits for all. The states that the best trials saved at a comparison are kept until
/// all trials have passed it, but not for trials that are far behind: those continue without exploiting. Trials must
/// save their state; one that cannot is never exploited, and a message says so.
///
/// Exploit: with `truncation` a trial in the worst `quantile_fraction` of the population takes over a random one of the
/// best `quantile_fraction`. With `t_test` a trial takes over another random one if the last `window` losses of that
/// are lower by Welch's t-test at 5 %. A donor has always saved the state by whose loss it is judged.
///
/// Explore: each of the dimensions in `mutate` (all, if that is empty) is resampled with probability
/// `resample_probability`, else multiplied by `perturbation_factor` or by 2 - factor: 1.2 or 0.8. Integers move by at
/// least 1, ordered choices move to a neighbour, unordered ones change only when resampled. The result meets the
/// space's conditions and constraints.
///
/// A report costs O(log n), a decision O(n log n) in the size of the population.
struct Pbt {
  static constexpr const char* type = "pbt";
  static constexpr const char& part = include_hypertune_src_schedulers_hpp_or_link_hypertune_hypertune;

  enum class Exploit : std::uint8_t { truncation, t_test };

  int perturbation_interval = 4;          ///< steps from one comparison to the next
  int max_steps = 100;                    ///< steps after which a trial is complete
  double quantile_fraction = 0.25;        ///< above 0, at most 0.5: the part of the trials that is good, or bad
  double resample_probability = 0.25;     ///< that a dimension is drawn anew
  double perturbation_factor = 1.2;       ///< above 1 and below 2
  Exploit exploit = Exploit::truncation;  ///< when a trial takes over another's state
  int window = 10;                        ///< 2 or more: reports that the t-test compares
  int burn_in_period = 0;                 ///< steps before a trial's first exploitation
  int population_size = 0;                ///< trials that train at a time; 0: all samples
  bool synchronous = false;               ///< a trial waits at a comparison for all others
  std::vector<std::string> mutate = {};   ///< names of the parameters that may change; empty: all

  static void describe(auto& self, auto&& option) {
    option("perturbation_interval", self.perturbation_interval, at_least(1), "steps from one comparison to the next");
    option("max_steps", self.max_steps, at_least(1), "steps after which a trial is complete");
    option("quantile_fraction", self.quantile_fraction, above(0).at_most(0.5),
           "the fraction of the trials that counts as good, and as bad");
    option("resample_probability", self.resample_probability, between(0, 1), "that a value is drawn anew");
    option("perturbation_factor", self.perturbation_factor, above(1).below(2),
           "values are multiplied by this, or by 2 minus this");
    option("exploit", self.exploit, {"truncation", "t_test"}, "the worst part exploit the best, or by a test of two");
    option("window", self.window, at_least(2), "reports that the t-test looks at");
    option("burn_in_period", self.burn_in_period, at_least(0), "steps before a trial's first exploitation");
    option("population_size", self.population_size, at_least(0), "trials that train at a time; 0: all samples");
    option("synchronous", self.synchronous, "all wait for one another at each comparison");
    option("mutate", self.mutate, "parameters that may change; without: all");
  }

  detail::Indirect<detail::PbtState> state_{};

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
