// Pb2: definitions.
#pragma once

#include <hypertune/schedule/pb2.hpp>

namespace hypertune::inline v0::detail {

HYPERTUNE_INLINE TimeVaryingBandit::TimeVaryingBandit(std::vector<Observation> observations)
    : seen_(std::move(observations)) {
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

HYPERTUNE_INLINE void TimeVaryingBandit::pending(const std::vector<double>& x, double time) {
  if (!factor_) return;
  const Observation o{x, time, 0};
  auto row = covariances(o);
  row.push_back(1 + kernel_.noise);
  if (!factor_->append(row)) return;
  seen_.push_back(o);
  weights_.push_back(0);
}

HYPERTUNE_INLINE double TimeVaryingBandit::bound(const std::vector<double>& x, double time, double width) const {
  auto k = covariances({x, time, 0});
  const double mean = dot(k.data(), weights_.data(), k.size());
  factor_->solve_lower(k);
  const double variance = std::max(0.0, 1 - dot(k.data(), k.data(), k.size()));
  return mean + width * std::sqrt(variance);
}

HYPERTUNE_INLINE double TimeVaryingBandit::square_distance(const Observation& a, const Observation& b) {
  double square = 0;
  for (std::size_t d = 0; d < a.x.size(); ++d) square += (a.x[d] - b.x[d]) * (a.x[d] - b.x[d]);
  return square;
}

HYPERTUNE_INLINE std::vector<double> TimeVaryingBandit::covariances(const Observation& o) const {
  std::vector<double> k;
  k.reserve(seen_.size() + 1);
  for (const auto& other : seen_)
    k.push_back(covariance(kernel_, square_distance(other, o), std::abs(other.time - o.time)));
  return k;
}

HYPERTUNE_INLINE std::optional<Cholesky> TimeVaryingBandit::factored(const Kernel& kernel, const Matrix& squares,
                                                                     const Matrix& gaps) {
  const std::size_t n = squares.rows();
  Matrix k(n, n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) k(i, j) = covariance(kernel, squares(i, j), gaps(i, j));
    k(i, i) = 1 + kernel.noise;
  }
  return Cholesky::of(k);
}

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

HYPERTUNE_INLINE void Pb2::prepare(const SearchSpace& space, std::uint64_t seed) {
  space_ = space;
  seed_ = seed;
  dimensions_ = detail::mutable_dimensions(space, mutate, "pb2");
  std::erase_if(dimensions_, [&](std::size_t d) { return space.domain(d).kind == DomainKind::categorical; });
}

HYPERTUNE_INLINE Decision Pb2::on_report(const Progress& progress) {
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

HYPERTUNE_INLINE Choice Pb2::choose_next(const Pool& pool) const {
  return state_.choose(pool, population_size, synchronous, [&](TrialId trial, const detail::PopulationMember& member) {
    Rng rng = derived_rng(seed_, {static_cast<std::uint64_t>(trial), 4, member.pauses});
    const auto donor = state_.truncation(trial, quantile_fraction, rng);
    if (!donor) return Choice::resume(trial);
    const auto& given = *state_.find(*donor, member.mark);
    return Choice::exploit(trial, *donor, explored(trial, given, rng), given.steps);
  });
}

HYPERTUNE_INLINE std::vector<double> Pb2::cube(const Point& point) const {
  const auto unit = space_->to_unit(point);
  std::vector<double> x;
  for (const std::size_t d : dimensions_) x.push_back(is_active(unit[d]) ? unit[d] : 0.5);
  return x;
}

HYPERTUNE_INLINE std::optional<Point> Pb2::placed(const Point& base, std::span<const double> x, Rng& rng) const {
  auto unit = space_->to_unit(base);
  for (double& u : unit)
    if (!is_active(u)) u = uniform01(rng);
  for (std::size_t i = 0; i < x.size(); ++i) unit[dimensions_[i]] = x[i];
  Point point = space_->from_unit(unit, rng);
  return space_->feasible(point) ? std::optional(std::move(point)) : std::nullopt;
}

HYPERTUNE_INLINE Point Pb2::explored(TrialId trial, const detail::PopulationArrival& donor, Rng& rng) const {
  const Point& base = donor.point;
  if (!space_ || dimensions_.empty()) return base;
  constexpr std::size_t min_seen = 4;
  if (seen_.size() < min_seen) return detail::explored(*space_, base, dimensions_, 1, 1.2, rng);
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

}  // namespace hypertune::inline v0
