// Which results count as the best if there are several losses.
#pragma once

#include <cstddef>
#include <vector>

namespace hypertune::inline v0::detail {

using LossVector = std::vector<double>;

/// Whether `a` is at least as good in all losses and better in one.
bool dominates(const LossVector& a, const LossVector& b);

/// Whether `target` is among the first `quota` of `points`, ordered from the best on: by nondominated fronts (Deb et
/// al. 2002), and within a front by the construction of an epsilon net (Salinas et al. 2021). That starts with the
/// point of the smallest first loss and always adds the one farthest from those chosen before, so that every part of
/// the front is close to a point with a high rank. Losses are scaled to the front's ranges. Points with an infinite
/// loss come last. O(n log n), and mostly one comparison with each other point, as points that rank behind are soon
/// detected.
bool among_first(const std::vector<LossVector>& points, std::size_t target, std::size_t quota);

}  // namespace hypertune::inline v0::detail
