// Tried: which configurations have been tried, and what is left of a finite space.
//
// A searcher learns nothing new from repeating a configuration. To average out noise, use repeat().
#pragma once

#include <hypertune/random.hpp>
#include <hypertune/search/detail/grid_walk.hpp>
#include <hypertune/search/grid.hpp>
#include <hypertune/search/searcher.hpp>
#include <hypertune/space/search_space.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

namespace hypertune::inline v0::detail {

/// The configurations tried so far. Two configurations are the same if their active values are.
class Tried {
 public:
  Tried() = default;
  explicit Tried(const SearchSpace& space) : space_(space), combinations_(combinations(space)) {}

  void add(const Point& point) { seen_.insert(hash(point)); }
  bool contains(const Point& point) const { return seen_.contains(hash(point)); }

  /// All configurations that have not been tried, if the space is small enough to enumerate.
  std::optional<std::vector<Point>> untried() const {
    if (combinations_ == 0) return std::nullopt;
    std::vector<Point> left;
    GridWalk walk(*space_, static_cast<int>(most), 0);
    for (std::uint64_t k = 0;; ++k) {
      const Point* point = walk.at(k);
      if (point == nullptr) return left;
      if (!contains(*point)) left.push_back(*point);
    }
  }

  /// `suggestion`, or a new configuration instead if it has been tried: a random one, or one of those left in a finite
  /// space. `exhausted` if none are left.
  Suggestion replaced_if_tried(Suggestion suggestion, Rng& rng) const {
    if (suggestion.kind != Suggestion::Kind::point || !contains(suggestion.point)) return suggestion;
    for (int tries = 0; tries < 100; ++tries)
      if (Point drawn = space_->sample(rng); !contains(drawn)) return drawn;
    const auto left = untried();
    if (!left) return suggestion;
    if (left->empty()) return Suggestion::exhausted();
    return (*left)[static_cast<std::size_t>(uniform01(rng) * static_cast<double>(left->size()))];
  }
  /// Whether all configurations of a finite space have been tried.
  bool all_tried() const {
    if (combinations_ == 0 || seen_.empty()) return false;
    GridWalk walk(*space_, static_cast<int>(most), 0);
    for (std::uint64_t k = 0;; ++k) {
      const Point* point = walk.at(k);
      if (point == nullptr) return true;
      if (!contains(*point)) return false;
    }
  }

  /// An upper bound of the number of configurations if they can be enumerated, else 0. 0 also for grids, whose
  /// searchers enumerate them, and for spaces with derived dimensions, which may be random.
  static std::size_t combinations(const SearchSpace& space) {
    if (space.grid_size() > 1) return 0;
    std::size_t product = 1;
    for (std::size_t d = 0; d < space.size(); ++d) {
      const DomainInfo& info = space.domain(d);
      if (info.kind == DomainKind::derived) return 0;
      const bool one = info.kind == DomainKind::constant || info.lower == info.upper;
      const std::size_t options = one ? std::size_t{1} : info.options;
      if (options == 0 || options > most / product) return 0;
      product *= options;
    }
    return product;
  }

 private:
  static constexpr std::size_t most = 1U << 16U;

  static std::uint64_t hash(const Point& point) {
    std::uint64_t hash = 0x9e3779b97f4a7c15U;
    for (const double x : point) {
      hash = (hash ^ (is_active(x) ? std::bit_cast<std::uint64_t>(x + 0.0) : 1)) * 0xff51afd7ed558ccdU;
      hash ^= hash >> 33U;
    }
    return hash;
  }

  std::optional<SearchSpace> space_;
  std::size_t combinations_ = 0;
  std::unordered_set<std::uint64_t> seen_;
};

}  // namespace hypertune::inline v0::detail
