// Several objectives: the results that no other result dominates, and the hypervolume that they cover.
#pragma once

#include <hypertune/detail/stable_sort.hpp>
#include <hypertune/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

inline bool weakly_dominates(const std::vector<double>& a, const std::vector<double>& b) {
  for (std::size_t k = 0; k < a.size(); ++k)
    if (a[k] > b[k]) return false;
  return true;
}

inline std::size_t require_same_size(std::span<const std::vector<double>> losses) {
  for (const auto& loss : losses)
    if (loss.size() != losses.front().size())
      fail(Errc::usage, "a result has {} objectives and another one {}: give all of them the same",
           losses.front().size(), loss.size());
  return losses.empty() ? 0 : losses.front().size();
}

// Indices of the losses without NaN, in lexicographic order: none is dominated by a later one that differs from it.
inline std::vector<std::size_t> lexicographic(std::span<const std::vector<double>> losses) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < losses.size(); ++i)
    if (std::none_of(losses[i].begin(), losses[i].end(), [](double x) { return std::isnan(x); })) order.push_back(i);
  hypertune::detail::stable_sort(order.begin(), order.end(),
                                 [&](std::size_t a, std::size_t b) { return losses[a] < losses[b]; });
  return order;
}

}  // namespace detail

/// The indices (ascending) of the losses that no other loss dominates: none is at least as good in every objective and
/// better in one. Losses are to be minimised. Equal losses are all on the front or none of them is. A loss with NaN is
/// never on it, an infinite one only if nothing dominates it. O(n log n) for one or two objectives, O(n * front) for
/// more.
inline std::vector<std::size_t> pareto_front(std::span<const std::vector<double>> losses) {
  const std::size_t objectives = detail::require_same_size(losses);
  std::vector<std::size_t> front;
  if (objectives == 0) return front;
  // In lexicographic order, a dominated point is dominated by an earlier member of the front. With two objectives the
  // last member has the smallest second one; with one objective all members are equal.
  for (const std::size_t i : detail::lexicographic(losses)) {
    const auto dominated_by = [&](std::size_t j) {
      return losses[j] != losses[i] && detail::weakly_dominates(losses[j], losses[i]);
    };
    const bool dominated = objectives <= 2 ? !front.empty() && dominated_by(front.back())
                                           : std::any_of(front.begin(), front.end(), dominated_by);
    if (!dominated) front.push_back(i);
  }
  std::sort(front.begin(), front.end());
  return front;
}

namespace detail {

// WFG (While, Bradstreet and Barone, "A Fast Way of Calculating Exact Hypervolumes", IEEE TEC 16(1), 2012): the sum of
// the volumes that each point adds to those before it. `points` is a front without repetitions, each below `reference`.
inline double wfg(std::vector<std::vector<double>> points, std::span<const double> reference) {
  const std::size_t k = reference.size();
  if (points.empty()) return 0;
  if (k == 1) return reference[0] - points.front()[0];
  std::sort(points.begin(), points.end());
  if (k == 2) {
    double volume = 0, bound = reference[1];
    for (const auto& p : points)
      if (p[1] < bound) {
        volume += (reference[0] - p[0]) * (bound - p[1]);
        bound = p[1];
      }
    return volume;
  }
  // Slicing: the points before a point are better in the first objective. So what the point adds extends in that
  // objective from the point to the reference, and the rest is a problem with one objective less.
  double volume = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::vector<double> own(points[i].begin() + 1, points[i].end());
    double exclusive = 1;
    for (std::size_t d = 1; d < k; ++d) exclusive *= reference[d] - points[i][d];
    std::vector<std::vector<double>> limited;  // the points before it, clipped to its part
    for (std::size_t j = 0; j < i; ++j) {
      std::vector<double> q(k - 1);
      for (std::size_t d = 0; d + 1 < k; ++d) q[d] = std::max(points[j][d + 1], own[d]);
      limited.push_back(std::move(q));
    }
    const auto kept = pareto_front(limited);
    std::vector<std::vector<double>> front;
    for (const std::size_t j : kept) front.push_back(std::move(limited[j]));
    std::sort(front.begin(), front.end());
    front.erase(std::unique(front.begin(), front.end()), front.end());
    volume += (reference[0] - points[i][0]) * (exclusive - wfg(std::move(front), reference.subspan(1)));
  }
  return volume;
}

}  // namespace detail

/// The volume that is dominated by the losses and bounded by `reference` (a loss that every good result beats). The
/// larger it is, the better the front. Exact (WFG); fast for up to 4 objectives, exponential in their number beyond.
/// Losses that are not better than the reference in every objective, or have a NaN, add nothing.
inline double hypervolume(std::span<const std::vector<double>> losses, std::span<const double> reference) {
  std::vector<std::vector<double>> inside;
  for (const auto& loss : losses) {
    if (loss.size() != reference.size())
      fail(Errc::usage, "a result has {} objectives but the reference point {}", loss.size(), reference.size());
    bool below = !loss.empty();
    for (std::size_t d = 0; d < loss.size(); ++d) below = below && loss[d] < reference[d];
    if (below) inside.push_back(loss);
  }
  std::vector<std::vector<double>> front;
  for (const std::size_t i : pareto_front(inside)) front.push_back(inside[i]);
  std::sort(front.begin(), front.end());
  front.erase(std::unique(front.begin(), front.end()), front.end());
  return detail::wfg(std::move(front), reference);
}

/// For each result, the best loss up to and including it. NaN counts as the worst (+inf).
inline std::vector<double> best_so_far(std::span<const double> losses) {
  std::vector<double> best(losses.size());
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < losses.size(); ++i) {
    if (losses[i] < least) least = losses[i];
    best[i] = least;
  }
  return best;
}

}  // namespace hypertune::inline v0
