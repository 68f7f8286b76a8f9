// The search space as searchers and the Tuner see it: dimensions of numbers, whatever the user's types are.
#pragma once

#include <hypertune/random.hpp>
#include <hypertune/space/domain_info.hpp>
#include <hypertune/space/params.hpp>
#include <hypertune/space/point.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {
struct SpaceModel;
}

/// The type-erased search space. A value that is cheap to copy (shared and immutable) and thread-safe. Built by
/// `space<Config>(…)` or from YAML; construction validates everything, so that a SearchSpace is always valid.
class SearchSpace {
 public:
  std::size_t size() const;  ///< number of dimensions
  const std::string& name(std::size_t dimension) const;
  const DomainInfo& domain(std::size_t dimension) const;
  std::optional<std::size_t> index_of(std::string_view name) const;

  /// Whether `dimension` is active given the coordinates of the dimensions before it (conditions refer only to those).
  bool active(std::size_t dimension, const Point& point) const;
  bool conditional(std::size_t dimension) const;  ///< has a condition at all

  /// A sample from the prior that meets all conditions and constraints. Error of kind `space` if a limited number of
  /// tries finds none.
  Point sample(Rng& rng) const;

  /// The point at the quantiles `unit` (one in [0, 1] per dimension); values of inactive dimensions are ignored. May
  /// violate constraints: see feasible(). `rng` is used for derived dimensions.
  Point from_unit(std::span<const double> unit, Rng& rng) const;
  /// The inverse where it exists: a discrete value maps to the middle of its interval, an inactive one to NaN.
  std::vector<double> to_unit(const Point& point) const;

  /// Whether the user has given a prior (Dim::prior) for any dimension.
  bool has_prior() const;
  /// How probable the user's priors make it that `point` is the best: the logarithm of the density over the unit cube,
  /// relative to uniform, over the dimensions that are active in it. 0 without priors; always finite. For a discrete
  /// dimension it is the mean over the value's cell. Constraints are ignored.
  double log_prior(const Point& point) const;
  /// A sample from the user's priors (from the domains' own where the user has given none) that meets all conditions
  /// and constraints. Errors as in sample().
  Point sample_prior(Rng& rng) const;
  /// The quantile of a dimension that the user believes to be the best; nullopt without a prior on it.
  std::optional<double> prior_center(std::size_t dimension) const;

  bool feasible(const Point& point) const;                        ///< meets all constraints between parameters
  std::optional<std::string> violated(const Point& point) const;  ///< the name of the first constraint not met

  /// The number of combinations of the grid dimensions (1 if there are none), in the order of `set_grid`.
  std::uint64_t grid_size() const;
  /// The number of points in the whole space if it is finite and has no conditions, else nullopt. Constraints are
  /// ignored.
  std::optional<std::uint64_t> cardinality() const;
  /// Sets the grid dimensions of `point` to combination `index` (the first dimension varies slowest). If that changes
  /// which conditions hold, dimensions that are no longer active become NaN, and newly active ones get a draw that
  /// depends only on `point` and `index`; derived ones are computed again. May violate constraints.
  void set_grid(Point& point, std::uint64_t index) const;

  Params params(const Point& point) const;  ///< active parameters by name
  /// The point of `params`; Error of kind `space` that names the dimension if a value is outside its domain or missing.
  /// A derived parameter that follows from the others may be left out; an Error if it is given and contradicts them.
  Point point(const Params& params) const;
  /// The same; an Error of kind `space` also if the configuration violates a constraint, which it names.
  Point configuration(const Params& params) const;
  /// The text of one coordinate for users ("adam", "0.001").
  std::string text(std::size_t dimension, double coordinate) const;

  /// One line per dimension, in the YAML grammar; equal texts mean equal spaces (constraints by name).
  std::string describe() const;

  /// Why `point` is not a valid point of this space, if it is not: its size, a coordinate out of bounds or off the
  /// lattice, a NaN that is missing or unexpected, a derived parameter that contradicts the others. Constraints are
  /// checked by feasible().
  std::optional<std::string> invalid(const Point& point) const;

  using Model = detail::SpaceModel;  // built by space/space.hpp
  explicit SearchSpace(std::shared_ptr<const Model> model) : model_(std::move(model)) {}
  const Model& model() const { return *model_; }

 private:
  template <class Quantile>
  Point draw(Rng& rng, const Quantile& quantile) const;
  /// The coordinate of a derived dimension that follows from those before it in `point`, in which it and all later
  /// ones are NaN.
  double computed(std::size_t dimension, const Point& point) const;

  std::shared_ptr<const Model> model_;
};

}  // namespace hypertune::inline v0
