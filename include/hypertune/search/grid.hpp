// Grid: every combination of all dimensions' values, once.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/search/searcher.hpp>
#include <hypertune/space/point.hpp>

namespace hypertune::inline v0 {

namespace detail {

struct GridState;

/// Whether two points are the same configuration, up to the rounding of a conversion to text and back.
bool same_point(const Point& a, const Point& b);

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

  detail::Indirect<detail::GridState> state_{};

  void prepare(const SearchSpace& space, const SearchContext& goal);
  Suggestion suggest(const Ask&);
  void observe(const Observation& o);
  bool covers_grid() const { return true; }
  bool finite() const { return true; }
  static constexpr bool cheap = true;
  static constexpr bool multi_objective = true;  // reads no losses
};

}  // namespace hypertune::inline v0
