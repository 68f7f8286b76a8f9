// Grid: every combination of all dimensions' values, once.
#pragma once

#include <hypertune/search/searcher.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

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

inline bool same_coordinate(double a, double b) {
  if (!is_active(a) || !is_active(b)) return is_active(a) == is_active(b);
  return a == b || std::fabs(a - b) <= 1e-12 * std::max(std::fabs(a), std::fabs(b));
}

/// Whether two points are the same configuration, up to the rounding of a conversion to text and back.
inline bool same_point(const Point& a, const Point& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same_coordinate);
}

struct GridState {
  std::optional<GridWalk> walk;
  std::uint64_t next = 0;  // number of grid points that have been started
};

}  // namespace detail

/// Tries every combination of values once, in order, the first dimension varying slowest; then it is exhausted. All
/// options of a choice, ordinal or grid dimension are tried, and all integers (or quantised numbers) if there are at
/// most `resolution` of them. Any other number gets `resolution` values at evenly spaced quantiles of its prior: from
/// the lower to the upper bound, both included, or in the middle of equal shares if it is unbounded. Inactive
/// parameters do not multiply the points; combinations that violate a constraint are left out.
struct Grid {
  static constexpr const char* type = "grid";

  int resolution = 10;  ///< 1 or more: values of a parameter that is continuous or has more

  static void describe(auto& self, auto&& option) {
    option("resolution", self.resolution, at_least(1), "values of a continuous parameter");
  }

  detail::GridState state_{};

  void prepare(const SearchSpace& space, const SearchContext& goal) {
    state_ = {};
    state_.walk.emplace(space, resolution, goal.seed);
  }
  Suggestion suggest(const Ask&) {
    const Point* point = state_.walk->at(state_.next);
    return point == nullptr ? Suggestion::exhausted() : Suggestion(*point);
  }
  void observe(const Observation& o);
  bool covers_grid() const { return true; }
  bool finite() const { return true; }
  static constexpr bool cheap = true;
  static constexpr bool multi_objective = true;  // reads no losses
};

}  // namespace hypertune::inline v0
