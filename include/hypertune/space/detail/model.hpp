// What a SearchSpace is made of: dimensions in the order in which they can be drawn, and constraints.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/random.hpp>
#include <hypertune/space/detail/law.hpp>
#include <hypertune/space/detail/user_prior.hpp>
#include <hypertune/space/domain_info.hpp>
#include <hypertune/space/params.hpp>
#include <hypertune/space/point.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::detail {

struct SpaceModel;

/// How a numeric coordinate looks from outside.
enum class ValueType : std::uint8_t { real, integer, boolean };

/// A condition as written: on a parameter by name, whose value is one of `values` or lies in [lower, upper].
struct ConditionDraft {
  std::string parent;
  std::vector<Value> values;
  bool range = false;
  double lower = 0, upper = 0;
};

/// The same on coordinates.
struct Condition {
  std::size_t parent = 0;
  std::vector<double> values;  // ascending; used unless `range`
  bool range = false;
  double lower = 0, upper = 0;

  bool holds(double coordinate) const {  // false for NaN, that is under an inactive parent
    if (range) return coordinate >= lower && coordinate <= upper;
    return std::find(values.begin(), values.end(), coordinate) != values.end();
  }
};

/// A belief as written: this value is good. `amount` is the spread of a number, the probability of an option.
struct PriorDraft {
  Value value;
  std::optional<double> amount;
};

/// A dimension on its own, before it is part of a space.
struct DimensionDraft {
  std::string name;
  DomainInfo info;
  std::vector<Value> options;  // by coordinate, for ordinal, categorical and constant
  ValueType type = ValueType::real;
  std::string grammar;  // "log_uniform: [0.0001, 0.1]"
  std::string problem;  // what is wrong with the domain, empty if nothing
  std::vector<ConditionDraft> conditions;
  std::vector<PriorDraft> beliefs;
  std::function<double(double)> from_unit, to_unit;   // of a domain with a prior of its own
  std::function<double(const Params&, Rng&)> derive;  // sees the parameters drawn before it …
  std::string scope;  // … of the nested space it comes from, "opt.", by their names there
};

struct Dimension : DimensionDraft {
  Law law;
  std::vector<Condition> when;
  UserPrior prior;

  bool has_options() const { return !options.empty(); }
  double quantile(double u) const { return from_unit ? law.settle(from_unit(u)) : law.from_unit(u); }
  double probability(double x) const { return to_unit ? std::clamp(to_unit(x), 0.0, 1.0) : law.to_unit(x); }
  /// The quantiles that map to x. A domain with a map of its own does not say how far they reach.
  std::pair<double, double> cell(double x) const {
    if (!to_unit) return law.cell(x);
    const double u = probability(x);
    return {u, u};
  }
};

struct Constraint {
  std::string name;
  std::function<bool(const SpaceModel&, const Point&)> holds;
};

/// Dimensions are kept parents first, so that a condition only looks back; `declared` is the user's order.
struct SpaceModel {
  std::vector<Dimension> dimensions;
  std::vector<std::size_t> declared;
  std::vector<std::size_t> by_name;  // sorted by name
  std::vector<std::size_t> grid;     // the grid dimensions
  std::vector<Constraint> constraints;
  bool has_prior = false;

  bool active(std::size_t d, const Point& point) const {
    for (const auto& condition : dimensions[d].when)
      if (!condition.holds(point[condition.parent])) return false;
    return true;
  }

  std::optional<std::size_t> find(std::string_view name) const {
    const auto at = std::lower_bound(by_name.begin(), by_name.end(), name,
                                     [&](std::size_t d, std::string_view n) { return dimensions[d].name < n; });
    if (at == by_name.end() || dimensions[*at].name != name) return std::nullopt;
    return *at;
  }

  Value value(std::size_t d, double coordinate) const;
  /// The coordinate of a value from outside, or an Error that names the dimension.
  double coordinate(std::size_t d, const Value& value) const;
  /// The active parameters; with a scope, only those whose names begin with it, without it.
  Params params(const Point& point, std::string_view scope = {}) const;
  /// The coordinate at the quantile u. Coordinates of `point` that are not drawn yet must be NaN.
  double draw(std::size_t d, double u, const Point& point, Rng& rng) const {
    const auto& dimension = dimensions[d];
    if (!dimension.derive) return dimension.quantile(u);
    const double x = dimension.derive(params(point, dimension.scope), rng);
    if (!std::isfinite(x))
      fail(Errc::space, "parameter '{}': its callable returned {}: it must return a finite number", dimension.name, x);
    return x;
  }
};

template <class Dimensions>
std::vector<std::string_view> names_of(const Dimensions& dimensions) {
  std::vector<std::string_view> names;
  for (const auto& dimension : dimensions) names.emplace_back(dimension.name);
  return names;
}

/// The number a value stands for, or NaN.
inline double number(const Value& value) {
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  return std::numeric_limits<double>::quiet_NaN();
}

/// Whether two values from outside mean the same; 1 and 1.0 do.
inline bool same_value(const Value& a, const Value& b) {
  if (a == b) return true;
  if (a.index() == b.index()) return false;
  return number(a) == number(b);  // NaN, and so false, unless both are numbers
}

/// The coordinate of `value` in a dimension, or NaN where it is none. `why` then says what would be.
inline double find_coordinate(const DimensionDraft& dimension, const Value& value, std::string& why) {
  const DomainInfo& info = dimension.info;
  if (!dimension.options.empty()) {
    for (std::size_t i = 0; i < dimension.options.size(); ++i)
      if (same_value(dimension.options[i], value)) return static_cast<double>(i);
    why = "one of";
    for (std::size_t i = 0; i < dimension.options.size() && i < 20; ++i)
      why += (i == 0 ? " " : ", ") + to_string(dimension.options[i]);
    if (dimension.options.size() > 20) why += ", …";
    return inactive;
  }
  double x = number(value);
  if (const auto* flag = std::get_if<bool>(&value); flag != nullptr && dimension.type == ValueType::boolean)
    x = *flag ? 1 : 0;
  if (info.kind == DomainKind::derived) {
    if (std::isfinite(x) && (dimension.type != ValueType::integer || (x == std::trunc(x) && std::fabs(x) < 0x1p63)))
      return x;
    why = dimension.type == ValueType::integer ? "a whole number" : "a finite number";
    return inactive;
  }
  const double slack = 1e-12 * std::max(std::isfinite(info.lower) ? std::fabs(info.lower) : 0.0,
                                        std::isfinite(info.upper) ? std::fabs(info.upper) : 0.0);
  if (std::isfinite(x) && x >= info.lower - slack && x <= info.upper + slack) {
    const double settled = Law(info).settle(x);
    if (std::fabs(settled - x) <= std::max(slack, 1e-9 * info.quantum)) return settled;
  }
  if (info.quantum > 0 && !(info.quantum == 1 && info.kind == DomainKind::integer))
    why = detail::format("{} plus a multiple of {}, at most {}", info.lower, info.quantum, info.upper);
  else
    why = detail::format("a {} in [{}, {}]", info.kind == DomainKind::integer ? "whole number" : "number", info.lower,
                         info.upper);
  return inactive;
}

inline Value SpaceModel::value(std::size_t d, double coordinate) const {
  const auto& dimension = dimensions[d];
  if (dimension.has_options()) {
    const double last = static_cast<double>(dimension.options.size() - 1);
    return dimension.options[static_cast<std::size_t>(std::clamp(std::round(coordinate), 0.0, last))];
  }
  const double settled = dimension.law.settle(coordinate);
  switch (dimension.type) {
    case ValueType::integer:  // a derived one has no bounds, and a record may say anything
      return static_cast<std::int64_t>(std::clamp(settled, -0x1p63, 0x1.fffffffffffffp62));
    case ValueType::boolean: return settled != 0;
    case ValueType::real: break;
  }
  return settled;
}

inline double SpaceModel::coordinate(std::size_t d, const Value& value) const {
  std::string why;
  const double x = find_coordinate(dimensions[d], value, why);
  if (!is_active(x))
    fail(Errc::space, "parameter '{}' cannot be {}: it must be {}", dimensions[d].name, to_string(value), why);
  return x;
}

inline Params SpaceModel::params(const Point& point, std::string_view scope) const {
  Params result;
  result.reserve(dimensions.size());
  for (const std::size_t d : declared) {
    const std::string& name = dimensions[d].name;
    if (d < point.size() && is_active(point[d]) && name.starts_with(scope))
      result.add(name.substr(scope.size()), value(d, point[d]));
  }
  return result;
}

}  // namespace hypertune::detail
