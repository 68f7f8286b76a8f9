// The model of a SearchSpace: dimensions in an order in which they can be drawn, and constraints.
#pragma once

#include <hypertune/random.hpp>
#include <hypertune/space/detail/domain_prior.hpp>
#include <hypertune/space/detail/draft.hpp>
#include <hypertune/space/detail/user_prior.hpp>
#include <hypertune/space/domain_info.hpp>
#include <hypertune/space/params.hpp>
#include <hypertune/space/point.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

struct SpaceModel;

/// A ConditionDraft in coordinates.
struct Condition {
  std::size_t parent = 0;
  std::vector<double> values;  // ascending; used unless `range`
  bool range = false;
  double lower = 0, upper = 0;

  bool holds(double coordinate) const;
};

struct Dimension : DimensionDraft {
  DomainPrior domain_prior;
  std::vector<Condition> when;
  UserPrior prior;

  bool has_options() const { return !options.empty(); }
  double quantile(double u) const;
  double probability(double x) const;
  /// The quantiles that map to x. A domain with its own map does not tell how far they reach: this is a single point.
  std::pair<double, double> cell(double x) const;
};

struct Constraint {
  std::string name;
  std::function<bool(const SpaceModel&, const Point&)> holds;

  /// Throws an Error of kind `space` that names the constraint if `holds` throws what is no Error.
  bool allows(const SpaceModel& model, const Point& point) const;
};

/// Dimensions are stored parents first, so that conditions refer only to earlier ones; `declared` is the user's order.
struct SpaceModel {
  std::vector<Dimension> dimensions;
  std::vector<std::size_t> declared;
  std::vector<std::size_t> by_name;  // sorted by name
  std::vector<std::size_t> grid;     // the grid dimensions
  std::vector<Constraint> constraints;
  bool has_prior = false;

  bool active(std::size_t d, const Point& point) const;
  std::optional<std::size_t> find(std::string_view name) const;
  Value value(std::size_t d, double coordinate) const;
  /// The coordinate of a value from outside the program; an Error that names the dimension if there is none.
  double coordinate(std::size_t d, const Value& value) const;
  /// The active parameters; with a scope, only those whose names begin with it, without that prefix.
  Params params(const Point& point, std::string_view scope = {}) const;
  /// The coordinate at the quantile u. Coordinates of `point` that are not drawn yet must be NaN.
  double draw(std::size_t d, double u, const Point& point, Rng& rng) const;
};

template <class Dimensions>
std::vector<std::string_view> names_of(const Dimensions& dimensions) {
  std::vector<std::string_view> names;
  for (const auto& dimension : dimensions) names.emplace_back(dimension.name);
  return names;
}

/// The number that a value represents, or NaN.
double number(const Value& value);

/// Whether two values from outside the program are equal; 1 and 1.0 are.
bool same_value(const Value& a, const Value& b);

/// The coordinate of `value` in a dimension, or NaN if there is none. `why` then says which values are possible.
double find_coordinate(const DimensionDraft& dimension, const Value& value, std::string& why);

}  // namespace hypertune::inline v0::detail
