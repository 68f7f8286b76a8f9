// GridWalk: the points of a full factorial design, in order.
#pragma once

#include <hypertune/random.hpp>
#include <hypertune/space/point.hpp>
#include <hypertune/space/search_space.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hypertune::inline v0::detail {

/// The points of a full factorial design in order, the first dimension varying slowest. Values of an inactive dimension
/// are not varied, so that no point repeats; points that violate a constraint are skipped.
class GridWalk {
 public:
  GridWalk(SearchSpace space, int resolution, std::uint64_t seed);

  /// The k-th point, or null if there are at most k points. Cheap if k is the last k asked for or the one after it.
  const Point* at(std::uint64_t k);

 private:
  void restart();
  void advance();
  void make_point();

  /// The quantiles at which a dimension is evaluated.
  std::vector<double> levels(std::size_t d, int resolution) const;

  static constexpr std::uint64_t max_misses = 1'000'000;

  SearchSpace space_;
  std::uint64_t seed_;
  std::vector<std::vector<double>> levels_;  // by dimension
  std::vector<std::size_t> digits_;
  std::uint64_t position_ = 0;  // feasible points before this one
  std::uint64_t visited_ = 0;   // all points before this one
  bool done_ = false, random_ = false;
  Point point_;
  Rng rng_{1};
};

}  // namespace hypertune::inline v0::detail
