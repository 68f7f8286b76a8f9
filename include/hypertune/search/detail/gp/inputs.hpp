// The inputs of a Gaussian process, by feature, and the performance-critical loops over them and their distances.
#pragma once

#include <hypertune/detail/linear.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail::gp {

/// The inputs of a model, one column per feature, so that distances are summed over contiguous memory. A numeric
/// feature lies approximately in [0, 1]; a categorical one is a label, compared for equality.
struct Inputs {
  std::vector<std::uint8_t> categorical;     // by feature
  std::vector<std::vector<double>> columns;  // by feature, then point

  explicit Inputs(std::vector<std::uint8_t> kinds = {}) : categorical(std::move(kinds)), columns(categorical.size()) {}
  std::size_t features() const { return columns.size(); }
  std::size_t size() const { return points_; }
  void add(std::span<const double> point) {
    for (std::size_t k = 0; k < columns.size(); ++k) columns[k].push_back(point[k]);
    ++points_;
  }

 private:
  std::size_t points_ = 0;  // stored, as there may be no feature at all
};

/// sums[j] += weight * (x[j] - at)^2
HYPERTUNE_HOT inline void add_squares(double weight, double at, const double* __restrict x, double* __restrict sums,
                                      std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) {
    const double d = x[j] - at;
    sums[j] += weight * d * d;
  }
}
HYPERTUNE_HOT inline void add_unequal(double weight, double at, const double* __restrict x, double* __restrict sums,
                                      std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) sums[j] += x[j] == at ? 0.0 : weight;
}
/// The sum of factor[j] * (x[j] - at)^2; and, in sum_unequal(), of factor[j] for each x[j] that is not `at`.
HYPERTUNE_HOT inline double sum_squares(const double* factor, double at, const double* x, std::size_t n) {
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  std::size_t j = 0;
  for (; j + 4 <= n; j += 4) {
    const double d0 = x[j] - at, d1 = x[j + 1] - at, d2 = x[j + 2] - at, d3 = x[j + 3] - at;
    s0 += factor[j] * d0 * d0;
    s1 += factor[j + 1] * d1 * d1;
    s2 += factor[j + 2] * d2 * d2;
    s3 += factor[j + 3] * d3 * d3;
  }
  for (; j < n; ++j) s0 += factor[j] * (x[j] - at) * (x[j] - at);
  return (s0 + s1) + (s2 + s3);
}
HYPERTUNE_HOT inline double sum_unequal(const double* factor, double at, const double* x, std::size_t n) {
  double sum = 0;
  for (std::size_t j = 0; j < n; ++j) sum += x[j] == at ? 0.0 : factor[j];
  return sum;
}
/// The sum of factor[j] * (at - x[j]).
HYPERTUNE_HOT inline double sum_differences(const double* factor, double at, const double* x, std::size_t n) {
  double s0 = 0, s1 = 0;
  std::size_t j = 0;
  for (; j + 2 <= n; j += 2) {
    s0 += factor[j] * (at - x[j]);
    s1 += factor[j + 1] * (at - x[j + 1]);
  }
  for (; j < n; ++j) s0 += factor[j] * (at - x[j]);
  return s0 + s1;
}

/// The sum of factor[j] * (x[i] - x[j]) * (a[i] - a[j]) over all j < i, and the same with b.
HYPERTUNE_HOT inline std::pair<double, double> sum_changes(const double* factor, const double* x, const double* a,
                                                           const double* b, std::size_t i) {
  double by_a = 0, by_b = 0;
  for (std::size_t j = 0; j < i; ++j) {
    const double change = factor[j] * (x[i] - x[j]);
    by_a += change * (a[i] - a[j]);
    by_b += change * (b[i] - b[j]);
  }
  return {by_a, by_b};
}

/// Replaces squared distances by Matern 5/2 correlations, and sets `slopes` to -2 dk/d(r^2) unless it is null.
HYPERTUNE_HOT inline void matern(double* squares, double* slopes, std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) {
    const double r = std::sqrt(5 * squares[j]);
    const double e = std::exp(-r);
    if (slopes != nullptr) slopes[j] = 5.0 / 3 * (1 + r) * e;
    squares[j] = (1 + r + r * r / 3) * e;
  }
}

}  // namespace hypertune::inline v0::detail::gp
