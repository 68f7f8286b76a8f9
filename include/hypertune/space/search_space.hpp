// The search space as searchers and the Tuner see it: dimensions of numbers, whatever the user's types are.
#pragma once

#include <hypertune/random.hpp>
#include <hypertune/space/params.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune {

/// One configuration as coordinates, one per dimension of the space: a numeric parameter's own value, the index of a
/// choice's option, NaN where a conditional dimension is not active.
using Point = std::vector<double>;

inline constexpr double inactive = std::numeric_limits<double>::quiet_NaN();
inline bool is_active(double coordinate) { return coordinate == coordinate; }

enum class DomainKind : std::uint8_t {
  real,         ///< any number in [lower, upper]
  integer,      ///< whole numbers (or multiples of `quantum`) in [lower, upper]
  ordinal,      ///< options 0 … options-1 whose order means something
  categorical,  ///< options 0 … options-1 without order (booleans too)
  constant,     ///< one value
  derived,      ///< computed from other parameters and a random draw: opaque to models
};

/// What a model may know of a domain. All coordinates are in the domain's own units.
struct DomainInfo {
  DomainKind kind = DomainKind::real;
  double lower = 0;                ///< smallest coordinate
  double upper = 1;                ///< largest coordinate
  bool log = false;                ///< uniform in the logarithm
  double quantum = 0;              ///< coordinates are lower + k * quantum; 0: not quantised
  std::size_t options = 0;         ///< number of distinct values; 0 where it is uncountable
  bool grid = false;               ///< every value is to be tried, not a sample of them
  std::optional<double> mean, sd;  ///< a normal prior (of the logarithm where `log`); lower and upper may be infinite
};

/// The type-erased search space. A value that is cheap to copy (shared and immutable); safe to use from several
/// threads. Built by `space<Config>(…)` or from YAML; construction validates everything, so that a SearchSpace is
/// always sound.
class SearchSpace {
 public:
  std::size_t size() const;  ///< number of dimensions
  const std::string& name(std::size_t dimension) const;
  const DomainInfo& domain(std::size_t dimension) const;
  std::optional<std::size_t> index_of(std::string_view name) const;

  /// Whether `dimension` is active given the coordinates of the dimensions before it (a condition only looks back).
  bool active(std::size_t dimension, const Point& point) const;
  bool conditional(std::size_t dimension) const;  ///< has a condition at all

  /// A draw from the prior that meets all conditions and constraints. Error of kind `space` when bounded tries find
  /// none.
  Point sample(Rng& rng) const;

  /// The point at the quantiles `unit` (one in [0, 1] per dimension); values of inactive dimensions are ignored.
  /// May violate constraints: see feasible(). `rng` serves derived draws.
  Point from_unit(std::span<const double> unit, Rng& rng) const;
  /// The inverse where there is one: a discrete value maps to the middle of its interval, an inactive one to NaN.
  std::vector<double> to_unit(const Point& point) const;

  bool feasible(const Point& point) const;                        ///< meets all constraints between parameters
  std::optional<std::string> violated(const Point& point) const;  ///< the name of the first constraint not met

  /// The number of combinations of the grid dimensions (1 when there are none), in the order of `set_grid`.
  std::uint64_t grid_size() const;
  /// The number of points in the whole space if it is finite and has no conditions, else nullopt.
  std::optional<std::uint64_t> cardinality() const;
  /// Overwrites the grid dimensions of `point` by combination `index` (the first dimension varies slowest).
  void set_grid(Point& point, std::uint64_t index) const;

  Params params(const Point& point) const;  ///< active parameters by name
  /// The point of `params`; Error of kind `space` naming the dimension when a value lies outside or is missing.
  Point point(const Params& params) const;
  /// The text of one coordinate as a person reads it ("adam", "0.001").
  std::string text(std::size_t dimension, double coordinate) const;

  /// One line per dimension, in the YAML grammar; equal texts mean equal spaces (constraints by name).
  std::string describe() const;

  struct Model;  // built by space/space.hpp
  explicit SearchSpace(std::shared_ptr<const Model> model) : model_(std::move(model)) {}
  const Model& model() const { return *model_; }

 private:
  std::shared_ptr<const Model> model_;
};

}  // namespace hypertune
