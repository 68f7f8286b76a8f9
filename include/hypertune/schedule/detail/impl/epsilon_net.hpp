// Which results count as the best if there are several losses: definitions.
#pragma once

#include <hypertune/schedule/detail/epsilon_net.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace hypertune::inline v0::detail {

bool dominates(const LossVector& a, const LossVector& b) {
  bool better = false;
  for (std::size_t k = 0; k < a.size() && k < b.size(); ++k) {
    if (a[k] > b[k]) return false;
    better = better || a[k] < b[k];
  }
  return better;
}

bool among_first(const std::vector<LossVector>& points, std::size_t target, std::size_t quota) {
  const auto finite = [&](std::size_t i) {
    return std::all_of(points[i].begin(), points[i].end(), [](double v) { return std::isfinite(v); });
  };
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (finite(i)) order.push_back(i);
  if (!finite(target)) {  // non-finite points rank after all finite ones, in the order of arrival
    std::size_t place = order.size();
    for (std::size_t i = 0; i < target; ++i) place += !finite(i);
    return place < quota;
  }
  // A point ranks after all points that dominate it.
  std::size_t beaten_by = 0;
  for (const std::size_t i : order)
    if (dominates(points[i], points[target]) && ++beaten_by >= quota) return false;
  // In lexicographic order no point is dominated by a later one: each goes to the first front in which no point
  // dominates it (Zhang et al., "An Efficient Approach to Nondominated Sorting", 2015).
  std::sort(order.begin(), order.end(),
            [&](std::size_t i, std::size_t j) { return points[i] != points[j] ? points[i] < points[j] : i < j; });
  std::vector<std::vector<std::size_t>> fronts;
  std::size_t home = 0;
  for (const std::size_t i : order) {
    const auto beaten_in = [&](const std::vector<std::size_t>& front) {
      return std::any_of(front.rbegin(), front.rend(), [&](std::size_t j) { return dominates(points[j], points[i]); });
    };
    // If a point is dominated by a member of a front, it is also dominated in all earlier fronts: so search by
    // bisection.
    const auto free = std::partition_point(fronts.begin(), fronts.end(), beaten_in);
    const auto place = static_cast<std::size_t>(free - fronts.begin());
    if (place == fronts.size()) fronts.emplace_back();
    fronts[place].push_back(i);
    if (i == target) home = place;
  }
  std::size_t placed = 0;
  for (std::size_t f = 0; f < home; ++f) placed += fronts[f].size();
  std::vector<std::size_t>& front = fronts[home];
  if (placed >= quota) return false;
  if (placed + front.size() <= quota) return true;
  std::sort(front.begin(), front.end());
  const std::size_t dimensions = points[target].size();
  LossVector low(dimensions, std::numeric_limits<double>::infinity()), high(dimensions, -low.front());
  for (const std::size_t i : front)
    for (std::size_t k = 0; k < dimensions; ++k) {
      low[k] = std::min(low[k], points[i][k]);
      high[k] = std::max(high[k], points[i][k]);
    }
  const auto distance = [&](std::size_t i, std::size_t j) {
    double sum = 0;
    for (std::size_t k = 0; k < dimensions; ++k) {
      const double width = high[k] / 2 - low[k] / 2;
      const double d = width > 0 ? (points[i][k] / 2 - points[j][k] / 2) / width : 0;
      sum += d * d;
    }
    return sum;
  };
  std::vector<double> nearest(front.size(), std::numeric_limits<double>::infinity());
  std::vector<bool> chosen(front.size(), false);
  std::size_t next = 0;
  for (std::size_t i = 1; i < front.size(); ++i)
    if (points[front[i]].front() < points[front[next]].front()) next = i;
  for (; placed < quota; ++placed) {
    if (front[next] == target) return true;
    chosen[next] = true;
    std::size_t farthest = front.size();
    for (std::size_t i = 0; i < front.size(); ++i) {
      if (chosen[i]) continue;
      nearest[i] = std::min(nearest[i], distance(front[i], front[next]));
      if (farthest == front.size() || nearest[i] > nearest[farthest]) farthest = i;
    }
    next = farthest;
  }
  return false;
}

}  // namespace hypertune::inline v0::detail
