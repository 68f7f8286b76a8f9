// A search space for evolutionary searchers: one number in [0, 1] per dimension, and the kind of each gene.
#pragma once

#include <hypertune/random.hpp>
#include <hypertune/space/detail/model.hpp>
#include <hypertune/space/search_space.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

/// A dimension that can vary.
struct Gene {
  enum class Kind : std::uint8_t { real, discrete, category };
  std::size_t dimension = 0;
  Kind kind = Kind::real;
  std::size_t options = 0;      // of a category or a discrete gene
  std::vector<double> edges{};  // of a discrete gene: between its options, in the unit interval, rising
};

/// The dimensions of a space that can vary, and the map from and to their quantiles. A genome has one number per
/// dimension of the space; dimensions that cannot vary have 0.5.
class Genes {
 public:
  Genes() = default;
  explicit Genes(const SearchSpace& space) : space_(space), constrained_(!space.model().constraints.empty()) {
    for (std::size_t d = 0; d < space.size(); ++d) {
      const DomainInfo& info = space.domain(d);
      if (info.kind == DomainKind::constant || info.kind == DomainKind::derived) continue;
      if (info.options == 1 || info.lower == info.upper) continue;
      Gene gene{.dimension = d};
      if (info.kind == DomainKind::categorical) {
        gene.kind = Gene::Kind::category;
        gene.options = info.options;
      } else if (info.options > 0 && info.options <= max_cells) {
        gene.edges = edges(space, d);
        if (!gene.edges.empty()) gene.kind = Gene::Kind::discrete;
        gene.options = info.options;
      }
      countable_ = countable_ && info.options > 0;
      genes_.push_back(std::move(gene));
    }
  }

  const SearchSpace& space() const { return *space_; }
  std::size_t size() const { return genes_.size(); }
  const Gene& operator[](std::size_t i) const { return genes_[i]; }
  auto begin() const { return genes_.begin(); }
  auto end() const { return genes_.end(); }
  bool constrained() const { return constrained_; }
  /// Whether there are only finitely many points, so that a point may repeat.
  bool countable() const { return countable_; }

  std::vector<double> blank() const { return std::vector<double>(space_->size(), 0.5); }
  Point point(std::span<const double> genome, Rng& rng) const { return space_->from_unit(genome, rng); }
  /// Inactive dimensions are NaN.
  std::vector<double> genome(const Point& point) const { return space_->to_unit(point); }
  bool feasible(const Point& point) const { return !constrained_ || space_->feasible(point); }

  static double of_option(std::size_t option, std::size_t options) {
    return (static_cast<double>(option) + 0.5) / static_cast<double>(options);
  }
  static std::size_t option_of(double x, std::size_t options) {
    const double n = static_cast<double>(options);
    return static_cast<std::size_t>(std::clamp(std::floor(x * n), 0.0, n - 1));
  }

 private:
  static constexpr std::size_t max_cells = 1000;  // a gene with more values is treated as real

  // A discrete coordinate maps to the middle of its cell, and the cells fill [0, 1], so that the edges can be computed
  // one by one. Empty if that does not hold (a domain with a map of its own).
  static std::vector<double> edges(const SearchSpace& space, std::size_t d) {
    const auto& dimension = space.model().dimensions[d];
    const DomainInfo& info = dimension.info;
    if (dimension.from_unit || dimension.to_unit) return {};
    const bool options = info.kind == DomainKind::ordinal;
    std::vector<double> edges;
    double low = 0;
    for (std::size_t k = 0; k < info.options; ++k) {
      const double x = options ? static_cast<double>(k)
                               : dimension.domain_prior.snap(info.lower + static_cast<double>(k) * info.quantum);
      const double high = 2 * dimension.domain_prior.to_unit(x) - low;
      if (!(high > low) || high > 1 + 1e-6) return {};
      if (k + 1 < info.options) edges.push_back(high);
      low = high;
    }
    if (std::fabs(low - 1) > 1e-6) edges.clear();
    return edges;
  }

  std::optional<SearchSpace> space_;
  std::vector<Gene> genes_;
  bool constrained_ = false;
  bool countable_ = true;
};

}  // namespace hypertune::inline v0::detail
