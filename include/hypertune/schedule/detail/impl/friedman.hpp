// Tests whether one of several paired series is worse than the best of them: definitions.
#pragma once

#include <hypertune/schedule/detail/friedman.hpp>

#include <algorithm>
#include <cmath>

namespace hypertune::inline v0::detail {

double friedman_worse(const std::vector<std::span<const double>>& series, std::size_t judged) {
  const std::size_t k = series.size(), n = k == 0 ? 0 : series.front().size();
  if (k < 2 || n < 2) return 1;
  std::vector<double> sums(k, 0.0);
  std::vector<std::size_t> order(k);
  double squares = 0;  // of all ranks
  for (std::size_t block = 0; block < n; ++block) {
    for (std::size_t i = 0; i < k; ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return series[a][block] < series[b][block]; });
    for (std::size_t i = 0; i < k;) {
      std::size_t end = i + 1;
      while (end < k && !(series[order[i]][block] < series[order[end]][block])) ++end;
      const double rank = (static_cast<double>(i + end) + 1) / 2;
      for (; i < end; ++i) {
        sums[order[i]] += rank;
        squares += rank * rank;
      }
    }
  }
  const double least = *std::min_element(sums.begin(), sums.end());
  if (!(sums[judged] > least)) return 1;
  const double groups = static_cast<double>(k), blocks = static_cast<double>(n);
  const double spread = squares - blocks * groups * (groups + 1) * (groups + 1) / 4;
  double between = 0;
  for (const double sum : sums) between += (sum - blocks * (groups + 1) / 2) * (sum - blocks * (groups + 1) / 2);
  const double statistic = (groups - 1) * between / spread;
  const double rest = 1 - statistic / (blocks * (groups - 1));  // share of the ranks' spread within the series
  if (!(rest > 1e-12)) return 0;                                // all blocks agree
  const double between_degrees = groups - 1, degrees = (blocks - 1) * (groups - 1);
  // Iman and Davenport's F, better than the chi-squared approximation with few blocks.
  const double f = (blocks - 1) * statistic / (blocks * (groups - 1) - statistic);
  const double any = incomplete_beta(degrees / 2, between_degrees / 2, degrees / (degrees + between_degrees * f));
  const double error = std::sqrt(2 * blocks * rest * spread / degrees);
  return std::max(any, std::min(1.0, 2 * student_upper((sums[judged] - least) / error, degrees)));
}

}  // namespace hypertune::inline v0::detail
