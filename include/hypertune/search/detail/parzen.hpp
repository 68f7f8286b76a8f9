// Parzen estimators over the unit cube of a search space: mixtures of product kernels, one kernel per observation.
#pragma once

#include <hypertune/random.hpp>
#include <hypertune/space/search_space.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

/// A coordinate of a kernel: continuous dimensions and wide lattices as quantiles in [0, 1], options and narrow
/// lattices as an index. NaN if the dimension is not active.
struct ParzenDimension {
  enum class Kind : std::uint8_t { continuous, lattice, categorical };
  Kind kind = Kind::continuous;
  std::size_t at = 0;           // index in the space
  std::size_t options = 0;      // of lattices and categorical dimensions
  double least = 0;             // smallest useful bandwidth: half of a cell
  std::vector<double> edges{};  // of the cells of a lattice: options + 1 values
  std::vector<double> middles{};
};

/// The dimensions that models use, and the maps between points and rows of model coordinates.
class ParzenSpace {
 public:
  ParzenSpace() = default;
  explicit ParzenSpace(const SearchSpace& space);

  std::size_t size() const { return dimensions_.size(); }
  const ParzenDimension& operator[](std::size_t d) const { return dimensions_[d]; }
  bool conditional() const { return conditional_; }

  /// Writes the row of a point: `row` has room for size() coordinates.
  void to_model(const SearchSpace& space, const Point& point, double* row) const;

  /// The quantile of a model coordinate, for SearchSpace::from_unit().
  double to_unit(std::size_t d, double x) const {
    const auto& dimension = dimensions_[d];
    if (dimension.kind == ParzenDimension::Kind::continuous) return x;
    if (dimension.kind == ParzenDimension::Kind::lattice) return dimension.middles[static_cast<std::size_t>(x)];
    return (x + 0.5) / static_cast<double>(dimension.options);
  }

  static std::size_t cell(const ParzenDimension& dimension, double u) {
    const auto at = std::upper_bound(dimension.edges.begin() + 1, dimension.edges.end() - 1, u);
    return static_cast<std::size_t>(at - dimension.edges.begin()) - 1;
  }

 private:
  static constexpr std::size_t max_cells = 64;  // with more cells, the middle of a cell represents it well enough

  std::vector<ParzenDimension> dimensions_;
  bool conditional_ = false;
};

struct ParzenOptions {
  double factor = 1;                 ///< factor of the bandwidths computed from the data
  double least = 0.01;               ///< smallest bandwidth, as a share of the range
  double flip = 0.2;                 ///< probability that a categorical kernel gives to the other options
  double prior = 1;                  ///< weight of the uniform component, in kernels
  std::span<const double> widths{};  ///< smallest bandwidth by dimension
  /// Bandwidths from the distance to the farther neighbour, per dimension, as in Hyperopt and Optuna; else one for all
  /// kernels from their standard deviation, as in Scott's rule (times `factor`).
  bool neighbours = true;
};

/// A mixture of products of truncated normals (over a lattice: of their mass in the cells) and categorical kernels, and
/// one uniform component. Densities are relative to the uniform density. A dimension that is inactive in a kernel's
/// observation is uniform in that kernel; a dimension that is inactive in the point does not count. This is a density
/// over a conditional space, too.
class ParzenEstimator {
 public:
  /// `rows`: observations, `space.size()` coordinates each. `weights`: one per row.
  void fit(const ParzenSpace& space, std::span<const double* const> rows, std::span<const double> weights,
           const ParzenOptions& options);

  std::size_t kernels() const { return kernels_; }

  /// The logarithm of the density at a row of model coordinates. If it is at least `enough`, it need not be computed to
  /// the end, and infinity is returned.
  double log_density(const double* row, double enough = std::numeric_limits<double>::infinity()) const;

  /// Draws a sample. `row` gets a coordinate in every dimension; the space decides which of them are active. If a
  /// dimension is inactive in the drawn kernel, its coordinate comes from another kernel in which it is active, if any.
  void sample(Rng& rng, double* row) const;

  /// A draw from kernel k (kernels(): the uniform component) in dimension d, with its bandwidth times `factor`.
  double coordinate(std::size_t d, std::size_t k, double factor, Rng& rng) const;
  /// A draw around a model coordinate, with the dimension's typical bandwidth times `factor`. Options do not change.
  double nearby(std::size_t d, double x, double factor, Rng& rng) const;

  /// A typical bandwidth of a numeric dimension; 0 if it is active in no kernel, or is categorical.
  double typical_bandwidth(std::size_t d) const { return typical_[d]; }

 private:
  void fit_number(std::size_t d, const ParzenOptions& options);
  void weigh(const double* row, std::size_t begin, std::size_t end) const;

  const ParzenSpace* space_ = nullptr;
  std::size_t kernels_ = 0;
  // By dimension, then kernel.
  std::vector<double> centers_, scales_, constants_;
  std::vector<std::vector<double>> tables_;  // of lattices: by cell, then kernel
  std::vector<double> same_, other_;         // of categorical dimensions
  std::vector<double> typical_;
  std::vector<double> log_weights_, cumulative_, bases_;
  double log_prior_ = 0, flip_ = 0.2;
  std::vector<std::pair<double, std::size_t>> order_;
  mutable std::vector<double> terms_;
};

}  // namespace hypertune::inline v0::detail
