// Welch's t-test: definitions.
#pragma once

#include <hypertune/schedule/detail/welch.hpp>

#include <cmath>

namespace hypertune::inline v0::detail {

double welch_less(std::span<const double> a, std::span<const double> b) {
  struct Moments {
    double n = 0, mean = 0, variance = 0;
    explicit Moments(std::span<const double> values) {
      double squares = 0;
      for (const double v : values) {  // Welford
        ++n;
        const double delta = v - mean;
        mean += delta / n;
        squares += delta * (v - mean);
      }
      variance = n > 1 ? squares / (n - 1) : 0;
    }
  };
  if (a.size() < 2 || b.size() < 2) return 1;
  const Moments x(a), y(b);
  if (!std::isfinite(x.mean + y.mean + x.variance + y.variance)) return 1;
  const double u = x.variance / x.n, v = y.variance / y.n;
  if (u + v <= 0) return x.mean < y.mean ? 0 : 1;
  const double t = (y.mean - x.mean) / std::sqrt(u + v);
  const double freedom = (u + v) * (u + v) / (u * u / (x.n - 1) + v * v / (y.n - 1));
  const double tail = 0.5 * incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t));
  return t > 0 ? tail : 1 - tail;
}

}  // namespace hypertune::inline v0::detail
