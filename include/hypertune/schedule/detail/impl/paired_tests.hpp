// Tests whether one series is larger than another one, pair by pair: definitions.
#pragma once

#include <hypertune/schedule/detail/paired_tests.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace hypertune::inline v0::detail {

// Not std::lgamma(): it writes the sign to a global variable, and experiments run in several threads.
inline double log_gamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

double incomplete_beta(double a, double b, double x) {
  if (!(x > 0)) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(b, a, 1 - x);
  const double front =
      std::exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * std::log(x) + b * std::log1p(-x)) / a;
  constexpr double tiny = 1e-300;
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  d = 1 / (std::fabs(d) < tiny ? tiny : d);
  double fraction = d;
  for (int m = 1; m < 500; ++m) {
    const double k = m;
    for (const double term : {k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k)),
                              -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1))}) {
      d = 1 + term * d;
      d = 1 / (std::fabs(d) < tiny ? tiny : d);
      c = 1 + term / c;
      if (std::fabs(c) < tiny) c = tiny;
      fraction *= c * d;
    }
    if (std::fabs(c * d - 1) < 1e-15) break;
  }
  return front * fraction;
}

double paired_t_test(std::span<const double> differences) {
  const auto n = static_cast<double>(differences.size());
  double mean = 0, squares = 0;
  for (const double d : differences) mean += d / n;
  for (const double d : differences) squares += (d - mean) * (d - mean);
  if (n < 2 || !std::isfinite(mean)) return 1;
  const double error = std::sqrt(squares / (n - 1) / n);
  if (!(error > 1e-12 * std::fabs(mean))) return mean > 0 ? 0 : 1;
  return student_upper(mean / error, n - 1);
}

double signed_rank_test(std::span<const double> differences) {
  std::vector<double> d;
  for (const double x : differences)
    if (x != 0 && x == x) d.push_back(x);
  const std::size_t n = d.size();
  if (n == 0) return 1;
  std::sort(d.begin(), d.end(), [](double a, double b) { return std::fabs(a) < std::fabs(b); });
  double above = 0, ties = 0;
  for (std::size_t i = 0; i < n;) {
    std::size_t end = i + 1;
    while (end < n && std::fabs(d[end]) == std::fabs(d[i])) ++end;
    const double count = static_cast<double>(end - i);
    const double rank = (static_cast<double>(i + end) + 1) / 2;
    ties += count * (count * count - 1);
    for (; i < end; ++i)
      if (d[i] > 0) above += rank;
  }
  if (n <= 25 && ties == 0) {  // exact: counts the subsets of the ranks by their sum
    const std::size_t most = n * (n + 1) / 2;
    std::vector<double> ways(most + 1, 0);
    ways[0] = 1;
    for (std::size_t r = 1; r <= n; ++r)
      for (std::size_t s = most; s >= r; --s) ways[s] += ways[s - r];
    double tail = 0;
    for (auto s = static_cast<std::size_t>(std::llround(above)); s <= most; ++s) tail += ways[s];
    return tail / std::ldexp(1.0, static_cast<int>(n));
  }
  const double m = static_cast<double>(n);
  const double deviation = std::sqrt(m * (m + 1) * (2 * m + 1) / 24 - ties / 48);
  return normal_cdf(-(above - m * (m + 1) / 4 - 0.5) / deviation);
}

}  // namespace hypertune::inline v0::detail
