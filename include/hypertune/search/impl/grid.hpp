// Grid: definitions.
#pragma once

#include <hypertune/search/detail/grid_walk.hpp>
#include <hypertune/search/grid.hpp>
#include <hypertune/space/detail/model.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

struct GridState {
  std::optional<GridWalk> walk;
  std::uint64_t next = 0;  // number of grid points that have been started
};

GridWalk::GridWalk(SearchSpace space, int resolution, std::uint64_t seed) : space_(std::move(space)), seed_(seed) {
  for (std::size_t d = 0; d < space_.size(); ++d) {
    levels_.push_back(levels(d, resolution));
    random_ = random_ || space_.domain(d).kind == DomainKind::derived;
  }
  restart();
}

const Point* GridWalk::at(std::uint64_t k) {
  if (k < position_ || (done_ && k == position_)) restart();
  while (!done_ && position_ < k) advance();
  return done_ ? nullptr : &point_;
}

void GridWalk::restart() {
  digits_.assign(space_.size(), 0);
  position_ = visited_ = 0;
  done_ = false;
  make_point();
  if (!space_.feasible(point_)) {
    advance();
    position_ = 0;
  }
}

void GridWalk::advance() {
  for (std::uint64_t misses = 0;; ++misses) {
    if (misses == max_misses)
      fail(Errc::space,
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
    make_point();
    if (!space_.feasible(point_)) continue;
    ++position_;
    return;
  }
}

void GridWalk::make_point() {
  std::vector<double> unit(digits_.size());
  for (std::size_t d = 0; d < unit.size(); ++d) unit[d] = levels_[d][digits_[d]];
  if (random_) rng_ = derived_rng(seed_, {visited_, 0x67726964U});
  point_ = space_.from_unit(unit, rng_);
  for (std::size_t d = 0; d < unit.size(); ++d) {  // exactly the bounds, not the result of exp(log())
    const DomainInfo& info = space_.domain(d);
    if (info.kind != DomainKind::real || info.quantum > 0 || info.mean || !is_active(point_[d])) continue;
    if (levels_[d].size() > 1 && digits_[d] == 0) point_[d] = info.lower;
    if (levels_[d].size() > 1 && digits_[d] + 1 == levels_[d].size()) point_[d] = info.upper;
  }
}

std::vector<double> GridWalk::levels(std::size_t d, int resolution) const {
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

bool same_coordinate(double a, double b) {
  if (!is_active(a) || !is_active(b)) return is_active(a) == is_active(b);
  return a == b || std::fabs(a - b) <= 1e-12 * std::max(std::fabs(a), std::fabs(b));
}

bool same_point(const Point& a, const Point& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same_coordinate);
}

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

void Grid::prepare(const SearchSpace& space, const SearchContext& goal) {
  state_ = {};
  state_.made().walk.emplace(space, resolution, goal.seed);
}

Suggestion Grid::suggest(const Ask&) {
  auto& state = state_.made();
  const Point* point = state.walk->at(state.next);
  return point == nullptr ? Suggestion::exhausted() : Suggestion(*point);
}

void Grid::observe(const Observation& o) {
  if (o.kind != Observation::Kind::started) return;
  auto& state = state_.made();
  const Point* expected = state.walk->at(state.next);
  if (expected != nullptr && detail::same_point(*expected, o.point)) ++state.next;
}

}  // namespace hypertune::inline v0
