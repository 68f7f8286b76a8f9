// GridCombinations: definitions.
#pragma once

#include <hypertune/search/detail/grid_combinations.hpp>

#include <cstddef>

namespace hypertune::inline v0 {

GridCombinations::GridCombinations(const SearchSpace& space) : size_(space.grid_size()) {
  const auto& model = space.model();
  const bool conditional = std::any_of(model.grid.begin(), model.grid.end(),
                                       [&](std::size_t d) { return !model.dimensions[d].when.empty(); });
  if (size_ == 1 || size_ > max_listed || (!conditional && model.constraints.empty())) return;
  listed_.emplace();
  const auto decided = decided_by_grid(model);
  for (std::uint64_t c = 0; c < size_; ++c) {
    const auto found = example(space, c);
    if (found && !repeats(model, decided, *found, c)) listed_->push_back(c);
  }
}

std::optional<Point> GridCombinations::draw(const SearchSpace& space, std::uint64_t combination, Rng& rng) {
  Point point(space.size(), inactive);
  if (!samples_any(space.model())) {  // there is only one point
    space.set_grid(point, combination);
    return space.feasible(point) ? std::optional(std::move(point)) : std::nullopt;
  }
  const auto tries = static_cast<int>(std::clamp<std::uint64_t>(max_tries / space.grid_size(), 20, 1000));
  std::vector<double> unit(space.size());
  for (int i = 0; i < tries; ++i) {
    for (double& u : unit) u = uniform01(rng);
    point = space.from_unit(unit, rng);
    space.set_grid(point, combination);
    if (space.feasible(point)) return point;
  }
  return std::nullopt;
}

std::vector<bool> GridCombinations::decided_by_grid(const detail::SpaceModel& model) {
  std::vector<bool> decided;
  for (const auto& dimension : model.dimensions)
    decided.push_back(std::all_of(dimension.when.begin(), dimension.when.end(), [&](const auto& condition) {
      const auto& parent = model.dimensions[condition.parent].info;
      return decided[condition.parent] && (parent.grid || parent.kind == DomainKind::constant);
    }));
  return decided;
}

bool GridCombinations::repeats(const detail::SpaceModel& model, const std::vector<bool>& decided, const Point& point,
                               std::uint64_t c) {
  for (auto d = model.grid.rbegin(); d != model.grid.rend(); ++d) {
    const std::uint64_t options = model.dimensions[*d].info.options;
    if (c % options != 0 && decided[*d] && !is_active(point[*d])) return true;
    c /= options;
  }
  return false;
}

}  // namespace hypertune::inline v0
