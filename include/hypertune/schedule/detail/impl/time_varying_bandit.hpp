// TimeVaryingBandit: definitions.
#pragma once

#include <hypertune/schedule/detail/time_varying_bandit.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace hypertune::inline v0::detail {

TimeVaryingBandit::TimeVaryingBandit(std::vector<Observation> observations) : seen_(std::move(observations)) {
  double mean = 0, squares = 0;
  for (const auto& o : seen_) mean += o.gain / static_cast<double>(seen_.size());
  for (const auto& o : seen_) squares += (o.gain - mean) * (o.gain - mean) / static_cast<double>(seen_.size());
  const double scale = squares > 0 && std::isfinite(squares) ? std::sqrt(squares) : 1;
  for (const auto& o : seen_) gains_.push_back(std::isfinite(o.gain) ? (o.gain - mean) / scale : 0);
  const std::size_t n = seen_.size();
  Matrix distances(n, n), gaps(n, n);  // shared by all kernels
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < i; ++j) {
      distances(i, j) = square_distance(seen_[i], seen_[j]);
      gaps(i, j) = std::abs(seen_[i].time - seen_[j].time);
    }
  // Coordinate search: one hyperparameter after another until none improves. It evaluates about a third of the grid.
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
    // A priori, lengths near 0.4 of the unit cube are likelier; with few values this decides.
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

void TimeVaryingBandit::pending(const std::vector<double>& x, double time) {
  if (!factor_) return;
  const Observation o{x, time, 0};
  auto row = covariances(o);
  row.push_back(1 + kernel_.noise);
  if (!factor_->append(row)) return;
  seen_.push_back(o);
  weights_.push_back(0);
}

double TimeVaryingBandit::bound(const std::vector<double>& x, double time, double width) const {
  auto k = covariances({x, time, 0});
  const double mean = dot(k.data(), weights_.data(), k.size());
  factor_->solve_lower(k);
  const double variance = std::max(0.0, 1 - dot(k.data(), k.data(), k.size()));
  return mean + width * std::sqrt(variance);
}

double TimeVaryingBandit::square_distance(const Observation& a, const Observation& b) {
  double square = 0;
  for (std::size_t d = 0; d < a.x.size(); ++d) square += (a.x[d] - b.x[d]) * (a.x[d] - b.x[d]);
  return square;
}

std::vector<double> TimeVaryingBandit::covariances(const Observation& o) const {
  std::vector<double> k;
  k.reserve(seen_.size() + 1);
  for (const auto& other : seen_)
    k.push_back(covariance(kernel_, square_distance(other, o), std::abs(other.time - o.time)));
  return k;
}

std::optional<Cholesky> TimeVaryingBandit::factored(const Kernel& kernel, const Matrix& squares, const Matrix& gaps) {
  const std::size_t n = squares.rows();
  Matrix k(n, n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) k(i, j) = covariance(kernel, squares(i, j), gaps(i, j));
    k(i, i) = 1 + kernel.noise;
  }
  return Cholesky::of(k);
}

}  // namespace hypertune::inline v0::detail
