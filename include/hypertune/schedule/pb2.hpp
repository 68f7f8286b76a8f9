// Pb2: population based bandits.
#pragma once

#include <hypertune/detail/linear.hpp>
#include <hypertune/detail/linkage.hpp>
#include <hypertune/schedule/explore.hpp>
#include <hypertune/schedule/population.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

/// How much a population's losses fell in an interval, as a function of the configuration and of time: a Gaussian
/// process with the kernel exp(-|x - x'|^2 / 2 l^2) (1 - forgetting)^(|t - t'| / 2) of Bogunovic et al. (2016).
class TimeVaryingBandit {
 public:
  struct Observation {
    std::vector<double> x;  // in the unit cube
    double time = 0;        // in intervals
    double gain = 0;
  };

  /// Chooses length, forgetting and noise by the marginal likelihood on a grid. `observations`: 2 or more.
  explicit TimeVaryingBandit(std::vector<Observation> observations);

  bool sound() const { return factor_.has_value(); }

  /// A member that trains at `x` now: what it will bring is not known, but it will say something about the points
  /// around it (the batch of GP-BUCB: variances shrink, means stay).
  void pending(const std::vector<double>& x, double time);

  /// Upper confidence bound of the gain at `x`.
  double bound(const std::vector<double>& x, double time, double width) const;

 private:
  struct Kernel {
    double length, forgetting, noise;
  };
  static double square_distance(const Observation& a, const Observation& b);
  static double covariance(const Kernel& kernel, double square, double gap) {
    return std::exp(-square / (2 * kernel.length * kernel.length) + std::log1p(-kernel.forgetting) * gap / 2);
  }
  std::vector<double> covariances(const Observation& o) const;
  static std::optional<Cholesky> factored(const Kernel& kernel, const Matrix& squares, const Matrix& gaps);

  std::vector<Observation> seen_;
  std::vector<double> gains_, weights_;
  Kernel kernel_{0.25, 0, 0.05};
  std::optional<Cholesky> factor_;
};

}  // namespace detail

/// Population based bandits (Parker-Holder et al., "Provably Efficient Online Hyperparameter Optimization with
/// Population-Based Bandits", NeurIPS 2020). As Pbt with truncation selection, but the configuration that a trial goes
/// on with is not a perturbation: it maximises an upper confidence bound of a time-varying Gaussian process of how much
/// a configuration brings within an interval, which learns from all trials. Best for small populations, where chance
/// seldom finds a good perturbation. While fewer than four intervals are known configurations are drawn at random.
///
/// Who is compared with whom, and who waits for whom, is as with Pbt.
///
/// Unordered choices are kept as the donor has them (PB2 is for numbers); name in `mutate` what may change. The model
/// looks at the last `history` intervals of all trials together: a decision costs O(history^3), with 100 about 2 ms.
struct Pb2 {
  static constexpr const char* type = "pb2";

  int perturbation_interval = 4;
  int max_steps = 100;
  double quantile_fraction = 0.25;
  double width = 1;
  int history = 100;
  int population_size = 0;
  bool synchronous = false;
  std::vector<std::string> mutate = {};

  static void describe(auto& self, auto&& option) {
    option("perturbation_interval", self.perturbation_interval, at_least(1), "steps from one comparison to the next");
    option("max_steps", self.max_steps, at_least(1), "steps after which a trial is complete");
    option("quantile_fraction", self.quantile_fraction, above(0).at_most(0.5), "what counts as good, and as bad");
    option("width", self.width, at_least(0), "of the confidence bound, in standard deviations");
    option("history", self.history, at_least(4), "intervals that the model learns from");
    option("population_size", self.population_size, at_least(0), "trials that train at a time; 0: all samples");
    option("synchronous", self.synchronous, "all wait for one another at each comparison");
    option("mutate", self.mutate, "parameters that may change; without: all");
  }

  struct Seen {
    Point point;
    double time, gain;
  };
  detail::Population state_{};
  std::deque<Seen> seen_{};
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
    return state_.may_give(trial, steps, quantile_fraction, perturbation_interval);
  }

  Choice choose_next(const Pool& pool) const;

 private:
  double time_of(int steps) const { return static_cast<double>(steps) / static_cast<double>(perturbation_interval); }
  std::vector<double> cube(const Point& point) const;
  /// `base` with the coordinates `x` of the dimensions that may change; nullopt where that breaks a constraint.
  std::optional<Point> placed(const Point& base, std::span<const double> x, Rng& rng) const;
  Point explored(TrialId trial, const detail::PopulationArrival& donor, Rng& rng) const;
};

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/schedule/impl/pb2.hpp>
#endif
