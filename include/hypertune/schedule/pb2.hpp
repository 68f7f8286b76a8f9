// Pb2: population based bandits.
#pragma once

#include <hypertune/detail/linear.hpp>
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

namespace hypertune {

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
  explicit TimeVaryingBandit(std::vector<Observation> observations) : seen_(std::move(observations)) {
    double mean = 0, squares = 0;
    for (const auto& o : seen_) mean += o.gain / static_cast<double>(seen_.size());
    for (const auto& o : seen_) squares += (o.gain - mean) * (o.gain - mean) / static_cast<double>(seen_.size());
    const double scale = squares > 0 && std::isfinite(squares) ? std::sqrt(squares) : 1;
    for (const auto& o : seen_) gains_.push_back(std::isfinite(o.gain) ? (o.gain - mean) / scale : 0);
    const std::size_t n = seen_.size();
    Matrix distances(n, n), gaps(n, n);  // the same for all kernels
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < i; ++j) {
        distances(i, j) = square_distance(seen_[i], seen_[j]);
        gaps(i, j) = std::abs(seen_[i].time - seen_[j].time);
      }
    // One hyperparameter after another until none gets better: about a third of the grid is looked at.
    constexpr double lengths[] = {0.1, 0.25, 0.6, 1.5}, forgettings[] = {0.0, 0.02, 0.1, 0.3},
                     noises[] = {0.003, 0.05, 0.5};
    constexpr std::size_t sizes[] = {4, 4, 3};
    std::array<std::size_t, 3> best = {1, 1, 1};
    std::array<bool, 48> looked{};
    double most = -1e300;
    const auto look = [&](const std::array<std::size_t, 3>& at) {
      bool& known = looked[(at[0] * sizes[1] + at[1]) * sizes[2] + at[2]];
      if (std::exchange(known, true)) return false;
      const Kernel kernel{lengths[at[0]], forgettings[at[1]], noises[at[2]]};
      auto factor = factored(kernel, distances, gaps);
      if (!factor) return false;
      std::vector<double> half = gains_;
      factor->solve_lower(half);
      // Lengths about half of the cube are likelier before anything is seen; with few values that decides.
      const double prior = -0.5 * std::pow(std::log(kernel.length / 0.4), 2) - 5 * kernel.forgetting;
      const double evidence = -0.5 * dot(half.data(), half.data(), half.size()) - 0.5 * factor->log_determinant();
      if (evidence + prior <= most) return false;
      most = evidence + prior;
      kernel_ = kernel;
      factor_ = std::move(factor);
      best = at;
      return true;
    };
    look(best);
    for (bool better = true; better;) {
      better = false;
      for (std::size_t axis = 0; axis < 3; ++axis)
        for (std::size_t value = 0; value < sizes[axis]; ++value) {
          auto at = best;
          at[axis] = value;
          better = look(at) || better;
        }
    }
    if (!factor_) return;
    weights_ = gains_;
    factor_->solve(weights_);
  }

  bool sound() const { return factor_.has_value(); }

  /// A member that trains at `x` now: what it will bring is not known, but it will say something about the points
  /// around it (the batch of GP-BUCB: variances shrink, means stay).
  void pending(const std::vector<double>& x, double time) {
    if (!factor_) return;
    const Observation o{x, time, 0};
    auto row = covariances(o);
    row.push_back(1 + kernel_.noise);
    if (!factor_->append(row)) return;
    seen_.push_back(o);
    weights_.push_back(0);
  }

  /// Upper confidence bound of the gain at `x`.
  double bound(const std::vector<double>& x, double time, double width) const {
    auto k = covariances({x, time, 0});
    const double mean = dot(k.data(), weights_.data(), k.size());
    factor_->solve_lower(k);
    const double variance = std::max(0.0, 1 - dot(k.data(), k.data(), k.size()));
    return mean + width * std::sqrt(variance);
  }

 private:
  struct Kernel {
    double length, forgetting, noise;
  };
  static double square_distance(const Observation& a, const Observation& b) {
    double square = 0;
    for (std::size_t d = 0; d < a.x.size(); ++d) square += (a.x[d] - b.x[d]) * (a.x[d] - b.x[d]);
    return square;
  }
  static double covariance(const Kernel& kernel, double square, double gap) {
    return std::exp(-square / (2 * kernel.length * kernel.length) + std::log1p(-kernel.forgetting) * gap / 2);
  }
  std::vector<double> covariances(const Observation& o) const {
    std::vector<double> k;
    k.reserve(seen_.size() + 1);
    for (const auto& other : seen_)
      k.push_back(covariance(kernel_, square_distance(other, o), std::abs(other.time - o.time)));
    return k;
  }
  static std::optional<Cholesky> factored(const Kernel& kernel, const Matrix& squares, const Matrix& gaps) {
    const std::size_t n = squares.rows();
    Matrix k(n, n);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < i; ++j) k(i, j) = covariance(kernel, squares(i, j), gaps(i, j));
      k(i, i) = 1 + kernel.noise;
    }
    return Cholesky::of(k);
  }

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

  static constexpr bool takes_over = true;

  void prepare(const SearchSpace& space, std::uint64_t seed) {
    space_ = space;
    seed_ = seed;
    dimensions_ = detail::mutable_dimensions(space, mutate, "pb2");
    std::erase_if(dimensions_, [&](std::size_t d) { return space.domain(d).kind == DomainKind::categorical; });
  }
  void on_create(TrialId trial, const Point& point) { state_.create(trial, point); }
  Decision on_report(const Progress& progress) {
    const bool pauses =
        state_.report(progress.trial, progress.steps, detail::ranked_loss(progress.loss()), perturbation_interval, 1);
    if (pauses) {
      const auto& member = state_[progress.trial];
      const double gain = member.before - member.loss;
      if (std::isfinite(gain)) seen_.push_back({member.point, time_of(member.steps), gain});
      if (seen_.size() > static_cast<std::size_t>(history)) seen_.pop_front();
    }
    return detail::Population::decide(progress, pauses, max_steps);
  }
  void on_pause(TrialId trial) { state_.pause(trial); }
  void on_exploit(TrialId trial, TrialId donor, const Point& point, int steps) {
    state_.exploit(trial, donor, point, steps, perturbation_interval);
  }
  void on_resume(TrialId trial) { state_.resume(trial); }
  void on_end(TrialId trial, TrialState) { state_.end(trial); }

  bool may_give(TrialId trial, int steps) const {
    return state_.may_give(trial, steps, quantile_fraction, perturbation_interval);
  }

  Choice choose_next(const Pool& pool) const {
    return state_.choose(pool, population_size, synchronous,
                         [&](TrialId trial, const detail::PopulationMember& member) {
                           Rng rng = derived_rng(seed_, {static_cast<std::uint64_t>(trial), 4, member.pauses});
                           const auto donor = state_.truncation(trial, quantile_fraction, rng);
                           if (!donor) return Choice::resume(trial);
                           const auto& given = *state_.find(*donor, member.mark);
                           return Choice::exploit(trial, *donor, explored(trial, given, rng), given.steps);
                         });
  }

 private:
  double time_of(int steps) const { return static_cast<double>(steps) / static_cast<double>(perturbation_interval); }
  std::vector<double> cube(const Point& point) const {
    const auto unit = space_->to_unit(point);
    std::vector<double> x;
    for (const std::size_t d : dimensions_) x.push_back(is_active(unit[d]) ? unit[d] : 0.5);
    return x;
  }
  /// `base` with the coordinates `x` of the dimensions that may change; nullopt where that breaks a constraint.
  std::optional<Point> placed(const Point& base, std::span<const double> x, Rng& rng) const {
    auto unit = space_->to_unit(base);
    for (double& u : unit)
      if (!is_active(u)) u = uniform01(rng);
    for (std::size_t i = 0; i < x.size(); ++i) unit[dimensions_[i]] = x[i];
    Point point = space_->from_unit(unit, rng);
    return space_->feasible(point) ? std::optional(std::move(point)) : std::nullopt;
  }

  Point explored(TrialId trial, const detail::PopulationArrival& donor, Rng& rng) const {
    const Point& base = donor.point;
    if (!space_ || dimensions_.empty()) return base;
    constexpr std::size_t enough = 4;
    if (seen_.size() < enough) return detail::explored(*space_, base, dimensions_, 1, 1.2, rng);
    std::vector<detail::TimeVaryingBandit::Observation> observations;
    for (const auto& seen : seen_) observations.push_back({cube(seen.point), seen.time, seen.gain});
    detail::TimeVaryingBandit bandit(std::move(observations));
    if (!bandit.sound()) return detail::explored(*space_, base, dimensions_, 1, 1.2, rng);
    const double time = time_of(donor.steps) + 1;
    for (const auto& [other, member] : state_.members())
      if (other != trial && !member.paused) bandit.pending(cube(member.point), time_of(member.steps) + 1);
    // Draws from all of the cube, then around the best of them, closer and closer.
    Point best = base;
    std::vector<double> x(dimensions_.size()), centre = cube(base);
    double highest = bandit.bound(centre, time, width), radius = 1;
    constexpr int rounds = 5, draws = 60;
    for (int round = 0; round < rounds; ++round, radius *= 0.4) {
      const std::vector<double> from = centre;
      for (int i = 0; i < draws; ++i) {
        for (std::size_t d = 0; d < x.size(); ++d) {
          const double u = uniform01(rng);
          x[d] = round == 0 ? u : std::clamp(from[d] + radius * (u - 0.5), 0.0, 1.0);
        }
        auto point = placed(base, x, rng);
        if (!point) continue;
        const auto at = cube(*point);  // a lattice moves it
        const double bound = bandit.bound(at, time, width);
        if (!(bound > highest)) continue;
        highest = bound;
        centre = at;
        best = std::move(*point);
      }
    }
    return best;
  }
};

}  // namespace hypertune
