// GridCombinations: which combinations of a space's grid dimensions there are to try.
#pragma once

#include <hypertune/random.hpp>
#include <hypertune/space/search_space.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace hypertune {

/// The combinations of the grid dimensions that trials are made of, as numbers for SearchSpace::set_grid(), ascending.
/// Left out are those that differ from an earlier one in inactive parameters alone, and those that no draw of the other
/// parameters brings in line with the constraints. A function of the space alone. Where there are very many, all of
/// them count.
class GridCombinations {
 public:
  explicit GridCombinations(const SearchSpace& space) : size_(space.grid_size()) {
    const auto& model = space.model();
    const bool conditional = std::any_of(model.grid.begin(), model.grid.end(),
                                         [&](std::size_t d) { return !model.dimensions[d].when.empty(); });
    if (size_ == 1 || size_ > most_listed || (!conditional && model.constraints.empty())) return;
    listed_.emplace();
    const auto decided = decided_by_grid(model);
    for (std::uint64_t c = 0; c < size_; ++c) {
      const auto found = example(space, c);
      if (found && !repeats(model, decided, *found, c)) listed_->push_back(c);
    }
  }

  std::uint64_t size() const { return listed_ ? listed_->size() : size_; }
  std::uint64_t operator[](std::uint64_t i) const { return listed_ ? (*listed_)[i] : i; }

  /// A feasible point with this combination, the same at each call; nullopt where none was found.
  static std::optional<Point> example(const SearchSpace& space, std::uint64_t combination) {
    Rng rng = derived_rng(0x67726964U, {combination});
    return draw(space, combination, rng);
  }
  /// Another one, drawn with `rng`.
  static std::optional<Point> draw(const SearchSpace& space, std::uint64_t combination, Rng& rng) {
    Point point(space.size(), inactive);
    if (!samples_any(space.model())) {  // one look says it all
      space.set_grid(point, combination);
      return space.feasible(point) ? std::optional(std::move(point)) : std::nullopt;
    }
    const auto tries = static_cast<int>(std::clamp<std::uint64_t>(most_tries / space.grid_size(), 20, 1000));
    std::vector<double> unit(space.size());
    for (int i = 0; i < tries; ++i) {
      for (double& u : unit) u = uniform01(rng);
      point = space.from_unit(unit, rng);
      space.set_grid(point, combination);
      if (space.feasible(point)) return point;
    }
    return std::nullopt;
  }

 private:
  static constexpr std::uint64_t most_listed = 100'000, most_tries = 2'000'000;

  static bool samples_any(const detail::SpaceModel& model) {
    return std::any_of(model.dimensions.begin(), model.dimensions.end(),
                       [](const auto& d) { return !d.info.grid && d.info.kind != DomainKind::constant; });
  }
  // Of each dimension: whether the grid alone says if it is active.
  static std::vector<bool> decided_by_grid(const detail::SpaceModel& model) {
    std::vector<bool> decided;
    for (const auto& dimension : model.dimensions)
      decided.push_back(std::all_of(dimension.when.begin(), dimension.when.end(), [&](const auto& condition) {
        const auto& parent = model.dimensions[condition.parent].info;
        return decided[condition.parent] && (parent.grid || parent.kind == DomainKind::constant);
      }));
    return decided;
  }
  // Whether combination `c` says something else than the first of a parameter that it turns off.
  static bool repeats(const detail::SpaceModel& model, const std::vector<bool>& decided, const Point& point,
                      std::uint64_t c) {
    for (auto d = model.grid.rbegin(); d != model.grid.rend(); ++d) {
      const std::uint64_t options = model.dimensions[*d].info.options;
      if (c % options != 0 && decided[*d] && !is_active(point[*d])) return true;
      c /= options;
    }
    return false;
  }

  std::uint64_t size_;
  std::optional<std::vector<std::uint64_t>> listed_;
};

}  // namespace hypertune
