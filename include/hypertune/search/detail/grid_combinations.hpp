// GridCombinations: the combinations of a space's grid dimensions that are to be tried.
#pragma once

#include <hypertune/random.hpp>
#include <hypertune/space/detail/model.hpp>
#include <hypertune/space/search_space.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace hypertune::inline v0 {

/// The combinations of the grid dimensions for which trials are made, as numbers for SearchSpace::set_grid(),
/// ascending. It leaves out combinations that differ from an earlier one only in inactive parameters, and those for
/// which no draw of the other parameters meets the constraints. Depends on the space alone. If there are very many
/// combinations, none is left out.
class GridCombinations {
 public:
  explicit GridCombinations(const SearchSpace& space);

  std::uint64_t size() const { return listed_ ? listed_->size() : size_; }
  std::uint64_t operator[](std::uint64_t i) const { return listed_ ? (*listed_)[i] : i; }

  /// A feasible point with this combination, the same at each call; nullopt if none was found.
  static std::optional<Point> example(const SearchSpace& space, std::uint64_t combination) {
    Rng rng = derived_rng(0x67726964U, {combination});
    return draw(space, combination, rng);
  }
  /// A feasible point with this combination, drawn with `rng`; nullopt if none was found.
  static std::optional<Point> draw(const SearchSpace& space, std::uint64_t combination, Rng& rng);

 private:
  static constexpr std::uint64_t max_listed = 100'000, max_tries = 2'000'000;

  static bool samples_any(const detail::SpaceModel& model) {
    return std::any_of(model.dimensions.begin(), model.dimensions.end(),
                       [](const auto& d) { return !d.info.grid && d.info.kind != DomainKind::constant; });
  }
  // For each dimension: whether the grid alone decides if it is active.
  static std::vector<bool> decided_by_grid(const detail::SpaceModel& model);
  // Whether combination `c` has a value other than the first for a parameter that is inactive in it.
  static bool repeats(const detail::SpaceModel& model, const std::vector<bool>& decided, const Point& point,
                      std::uint64_t c);

  std::uint64_t size_;
  std::optional<std::vector<std::uint64_t>> listed_;
};

}  // namespace hypertune::inline v0
