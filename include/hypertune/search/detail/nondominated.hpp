// Ranking by domination: fronts, crowding distances, and reference directions for many objectives.
#pragma once

#include <hypertune/search/detail/fitness.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

/// Fronts of indices: members of the first front are dominated by none, those of the next only by members of the first,
/// and so on. Fast nondominated sorting (Deb et al. 2002), O(objectives * n^2).
inline std::vector<std::vector<std::size_t>> nondominated_fronts(const std::vector<const Fitness*>& all) {
  const std::size_t n = all.size();
  std::vector<std::vector<std::size_t>> beats(n), fronts;
  std::vector<std::size_t> beaten_by(n, 0), front;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = i + 1; j < n; ++j) {
      if (dominates(*all[i], *all[j])) {
        beats[i].push_back(j);
        ++beaten_by[j];
      } else if (dominates(*all[j], *all[i])) {
        beats[j].push_back(i);
        ++beaten_by[i];
      }
    }
  for (std::size_t i = 0; i < n; ++i)
    if (beaten_by[i] == 0) front.push_back(i);
  while (!front.empty()) {
    std::vector<std::size_t> next;
    for (const std::size_t i : front)
      for (const std::size_t j : beats[i])
        if (--beaten_by[j] == 0) next.push_back(j);
    std::sort(next.begin(), next.end());
    fronts.push_back(std::exchange(front, std::move(next)));
  }
  return fronts;
}

/// The crowding distance of each member of a front (Deb et al. 2002): the sides of the box between its neighbours,
/// relative to the front's extent; infinite for the extreme members. Infinite losses do not count for the extent.
inline std::vector<double> crowding(const std::vector<const Fitness*>& all, const std::vector<std::size_t>& front) {
  const std::size_t n = front.size();
  std::vector<double> distance(n, 0);
  if (n == 0) return distance;
  std::vector<std::size_t> order(n);
  for (std::size_t k = 0; k < all[front.front()]->losses.size(); ++k) {
    const auto loss = [&](std::size_t i) {
      return all[front[i]]->losses.size() > k ? all[front[i]]->losses[k] : worst_loss;
    };
    for (std::size_t i = 0; i < n; ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return loss(a) != loss(b) ? loss(a) < loss(b) : a < b; });
    distance[order.front()] = distance[order.back()] = std::numeric_limits<double>::infinity();
    const double extent = loss(order.back()) - loss(order.front());
    if (!(extent > 0) || !std::isfinite(extent)) continue;
    for (std::size_t i = 1; i + 1 < n; ++i) distance[order[i]] += (loss(order[i + 1]) - loss(order[i - 1])) / extent;
  }
  return distance;
}

/// The directions of Das and Dennis (1998): all points of the unit simplex whose coordinates are multiples of 1 /
/// divisions.
inline std::vector<std::vector<double>> reference_directions(std::size_t objectives, std::size_t divisions) {
  std::vector<std::vector<double>> all;
  std::vector<std::size_t> parts(objectives, 0);
  parts.back() = divisions;
  while (true) {
    std::vector<double> direction;
    for (const std::size_t part : parts)
      direction.push_back(static_cast<double>(part) / static_cast<double>(std::max<std::size_t>(divisions, 1)));
    all.push_back(std::move(direction));
    // The next composition: one unit of the last nonzero part moves to the part before it, the rest to the last part.
    std::size_t i = objectives - 1;
    while (i > 0 && parts[i] == 0) --i;
    if (i == 0) return all;
    const std::size_t rest = std::exchange(parts[i], 0) - 1;
    ++parts[i - 1];
    parts.back() = rest;
  }
}

/// The directions with the most divisions that give at most `most` directions; at least one per objective.
inline std::vector<std::vector<double>> directions_for(std::size_t objectives, std::size_t most) {
  double count = static_cast<double>(objectives);
  std::size_t divisions = 1;
  while (objectives > 1) {
    // C(divisions + objectives, objectives - 1): the number with one more division
    const double next = count * static_cast<double>(divisions + objectives) / static_cast<double>(divisions + 1);
    if (next > static_cast<double>(most)) break;
    count = next;
    ++divisions;
  }
  return reference_directions(objectives, divisions);
}

/// Solves a small system by elimination with pivoting; empty if it is singular.
inline std::vector<double> solve_small(std::vector<std::vector<double>> a, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < n; ++i)
      if (std::fabs(a[i][k]) > std::fabs(a[pivot][k])) pivot = i;
    if (!(std::fabs(a[pivot][k]) > 1e-12)) return {};
    std::swap(a[k], a[pivot]);
    std::swap(b[k], b[pivot]);
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = a[i][k] / a[k][k];
      for (std::size_t j = k; j < n; ++j) a[i][j] -= factor * a[k][j];
      b[i] -= factor * b[k];
    }
  }
  for (std::size_t k = n; k-- > 0;) {
    for (std::size_t j = k + 1; j < n; ++j) b[k] -= a[k][j] * b[j];
    b[k] /= a[k][k];
  }
  return b;
}

/// The reference direction that each point belongs to, and its distance from it, after the losses are scaled by the
/// ideal point and the hyperplane through the extreme points (Deb and Jain 2014, algorithms 2 and 3).
class Niches {
 public:
  Niches(const std::vector<const Fitness*>& all, const std::vector<std::size_t>& first_front,
         const std::vector<std::vector<double>>& directions)
      : directions_(directions), niche_(all.size(), 0), distance_(all.size(), 0) {
    const std::size_t m = directions.front().size();
    std::vector<double> ideal(m, worst_loss), nadir(m, -worst_loss);
    for (const Fitness* f : all)
      for (std::size_t k = 0; k < m && k < f->losses.size(); ++k) ideal[k] = std::min(ideal[k], f->losses[k]);
    for (const std::size_t i : first_front)
      for (std::size_t k = 0; k < m && k < all[i]->losses.size(); ++k)
        if (all[i]->losses[k] < worst_loss) nadir[k] = std::max(nadir[k], all[i]->losses[k]);
    // Scale by the front's extent first, so that the units of objectives do not matter (the paper's extreme points
    // depend on them), then by the plane.
    std::vector<double> scale(m, 1);
    for (std::size_t k = 0; k < m; ++k)
      if (const double extent = nadir[k] - ideal[k]; extent > 0 && std::isfinite(extent)) scale[k] = extent;
    std::vector<std::vector<double>> extremes;
    for (std::size_t k = 0; k < m; ++k) {  // the point nearest to axis k
      double least = worst_loss;
      std::vector<double> found(m, 0);
      for (const std::size_t i : first_front) {
        std::vector<double> x = shifted(*all[i], ideal);
        double worst = 0;
        for (std::size_t j = 0; j < m; ++j) {
          x[j] /= scale[j];
          worst = std::max(worst, j == k ? x[j] : x[j] * 1e6);
        }
        if (worst < least) {
          least = worst;
          found = x;
        }
      }
      extremes.push_back(std::move(found));
    }
    const std::vector<double> plane = solve_small(extremes, std::vector<double>(m, 1));
    bool sound = !plane.empty();  // a plane that misses an axis, or meets it next to the ideal point, is not used
    for (const double x : plane) sound = sound && x > 1e-6 && x < 1e6;
    for (std::size_t k = 0; sound && k < m; ++k) scale[k] /= plane[k];
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::vector<double> x = shifted(*all[i], ideal);
      for (std::size_t k = 0; k < m; ++k) x[k] /= scale[k];
      place(i, x);
    }
  }

  std::size_t niche(std::size_t i) const { return niche_[i]; }
  double distance(std::size_t i) const { return distance_[i]; }

 private:
  static std::vector<double> shifted(const Fitness& f, const std::vector<double>& ideal) {
    constexpr double far = 1e6;  // stands for infinite losses
    std::vector<double> x(ideal.size(), far);
    for (std::size_t k = 0; k < x.size() && k < f.losses.size(); ++k)
      if (std::isfinite(f.losses[k]) && std::isfinite(ideal[k])) x[k] = f.losses[k] - ideal[k];
    return x;
  }
  void place(std::size_t i, const std::vector<double>& x) {
    distance_[i] = worst_loss;
    for (std::size_t d = 0; d < directions_.size(); ++d) {
      double along = 0, length = 0, rest = 0;
      for (std::size_t k = 0; k < x.size(); ++k) {
        along += x[k] * directions_[d][k];
        length += directions_[d][k] * directions_[d][k];
      }
      for (std::size_t k = 0; k < x.size(); ++k) {
        const double off = x[k] - along / length * directions_[d][k];
        rest += off * off;
      }
      if (rest < distance_[i]) {
        distance_[i] = rest;
        niche_[i] = d;
      }
    }
  }

  const std::vector<std::vector<double>>& directions_;
  std::vector<std::size_t> niche_;
  std::vector<double> distance_;
};

}  // namespace hypertune::inline v0::detail
