// Grid: every combination of every dimension's values, once.
#pragma once

#include <hypertune/search/searcher.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune {

namespace detail {

/// The points of a full factorial one after the other, the first dimension varying slowest. A dimension that is not
/// active has no values, so that no point comes twice; points that violate a constraint are passed over.
class GridWalk {
 public:
  GridWalk(SearchSpace space, int resolution, std::uint64_t seed) : space_(std::move(space)), seed_(seed) {
    for (std::size_t d = 0; d < space_.size(); ++d) {
      levels_.push_back(levels(d, resolution));
      random_ = random_ || space_.domain(d).kind == DomainKind::derived;
    }
    restart();
  }

  /// The k-th point, or null if there are no more than k. Cheap when k is the last k asked for or the one after it.
  const Point* at(std::uint64_t k) {
    if (k < position_ || (done_ && k == position_)) restart();
    while (!done_ && position_ < k) advance();
    return done_ ? nullptr : &point_;
  }

 private:
  void restart() {
    digits_.assign(space_.size(), 0);
    position_ = visited_ = 0;
    done_ = false;
    settle();
    if (!space_.feasible(point_)) {
      advance();
      position_ = 0;
    }
  }

  void advance() {
    for (std::uint64_t misses = 0;; ++misses) {
      if (misses == max_misses)
        fail(
            Errc::space,
            "grid: {} combinations in a row violate the constraints ('{}' is the last): take a smaller grid, or sample",
            misses, space_.violated(point_).value_or(""));
      std::size_t d = digits_.size();
      while (d > 0 && !(is_active(point_[d - 1]) && digits_[d - 1] + 1 < levels_[d - 1].size())) --d;
      if (d == 0) {
        done_ = true;
        return;
      }
      ++digits_[d - 1];
      std::fill(digits_.begin() + static_cast<std::ptrdiff_t>(d), digits_.end(), 0);
      ++visited_;
      settle();
      if (!space_.feasible(point_)) continue;
      ++position_;
      return;
    }
  }

  void settle() {
    std::vector<double> unit(digits_.size());
    for (std::size_t d = 0; d < unit.size(); ++d) unit[d] = levels_[d][digits_[d]];
    if (random_) rng_ = derived_rng(seed_, {visited_, 0x67726964U});
    point_ = space_.from_unit(unit, rng_);
    for (std::size_t d = 0; d < unit.size(); ++d) {  // the bounds themselves, not what comes out of exp(log())
      const DomainInfo& info = space_.domain(d);
      if (info.kind != DomainKind::real || info.quantum > 0 || info.mean || !is_active(point_[d])) continue;
      if (levels_[d].size() > 1 && digits_[d] == 0) point_[d] = info.lower;
      if (levels_[d].size() > 1 && digits_[d] + 1 == levels_[d].size()) point_[d] = info.upper;
    }
  }

  /// The quantiles at which a dimension is tried.
  std::vector<double> levels(std::size_t d, int resolution) const {
    const DomainInfo& info = space_.domain(d);
    const bool numeric = info.kind == DomainKind::real || info.kind == DomainKind::integer;
    if (info.kind == DomainKind::constant || info.kind == DomainKind::derived) return {0.5};
    const auto wanted = static_cast<std::size_t>(resolution);
    const bool all = info.options > 0 && (!numeric || info.grid || info.options <= wanted);
    const bool bounded = !info.mean && std::isfinite(info.lower) && std::isfinite(info.upper);
    const std::size_t n = all ? info.options : wanted;
    std::vector<double> result;
    double last = inactive;
    for (std::size_t i = 0; i < n; ++i) {
      const auto k = static_cast<double>(i);
      double u = bounded && n > 1 ? k / static_cast<double>(n - 1) : (k + 0.5) / static_cast<double>(n);
      if (all) {
        Point alone(space_.size(), inactive);
        alone[d] = numeric ? info.lower + k * info.quantum : k;
        u = space_.to_unit(alone)[d];
      }
      // Neighbouring quantiles of a discrete domain may have the same value.
      const double value = space_.model().dimensions[d].quantile(u);
      if (value == last) continue;
      last = value;
      result.push_back(u);
    }
    return result;
  }

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

/// Whether two points are the same configuration, after a way through text and back as well.
inline bool same_point(const Point& a, const Point& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same_coordinate);
}

struct GridState {
  std::optional<GridWalk> walk;
  std::uint64_t next = 0;  // grid points that have been started
};

}  // namespace detail

/// Tries every combination of values once, in order, the first dimension varying slowest; then it is exhausted. All
/// options of a choice, ordinal or grid dimension are tried, and all whole (or quantised) numbers where there are at
/// most `resolution` of them. Of any other number `resolution` values are tried, at evenly spaced quantiles of its
/// prior: from the lower to the upper bound, both included, or in the middle of equal shares where it is unbounded.
/// Inactive parameters do not multiply the points; combinations that violate a constraint are left out.
struct Grid {
  static constexpr const char* type = "grid";

  int resolution = 10;

  static void describe(auto& self, auto&& option) {
    option("resolution", self.resolution, at_least(1), "values of a continuous parameter");
  }

  detail::GridState state_{};

  void prepare(const SearchSpace& space, const SearchGoal& goal) {
    state_ = {};
    state_.walk.emplace(space, resolution, goal.seed);
  }
  Suggestion suggest(const Ask&) {
    const Point* point = state_.walk->at(state_.next);
    return point == nullptr ? Suggestion::exhausted() : Suggestion(*point);
  }
  void observe(const Observation& o) {
    if (o.kind != Observation::Kind::started) return;
    const Point* expected = state_.walk->at(state_.next);
    if (expected != nullptr && detail::same_point(*expected, o.point)) ++state_.next;
  }
  bool covers_grid() const { return true; }
  bool finite() const { return true; }
  static constexpr bool cheap = true;
  static constexpr bool multi_objective = true;  // it reads no loss at all
};

}  // namespace hypertune
