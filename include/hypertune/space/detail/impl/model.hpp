// The model of a SearchSpace: definitions.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/error.hpp>
#include <hypertune/space/detail/lattice.hpp>
#include <hypertune/space/detail/model.hpp>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

std::pair<double, double> Dimension::cell(double x) const {
  if (!to_unit) return domain_prior.cell(x);
  const double u = probability(x);
  return {u, u};
}

bool SpaceModel::active(std::size_t d, const Point& point) const {
  for (const auto& condition : dimensions[d].when)
    if (!condition.holds(point[condition.parent])) return false;
  return true;
}

std::optional<std::size_t> SpaceModel::find(std::string_view name) const {
  const auto at = std::lower_bound(by_name.begin(), by_name.end(), name,
                                   [&](std::size_t d, std::string_view n) { return dimensions[d].name < n; });
  if (at == by_name.end() || dimensions[*at].name != name) return std::nullopt;
  return *at;
}

double SpaceModel::draw(std::size_t d, double u, const Point& point, Rng& rng) const {
  const auto& dimension = dimensions[d];
  if (!dimension.derive) return dimension.quantile(u);
  const double x = dimension.derive(params(point, dimension.scope), rng);
  if (!std::isfinite(x))
    fail(Errc::space, "parameter '{}': its callable returned {}: it must return a finite number", dimension.name, x);
  return x;
}

double number(const Value& value) {
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  return std::numeric_limits<double>::quiet_NaN();
}

bool same_value(const Value& a, const Value& b) { return a == b || compare_numbers(a, b) == 0; }

double find_coordinate(const DimensionDraft& dimension, const Value& value, std::string& why) {
  const DomainInfo& info = dimension.info;
  if (!dimension.options.empty()) {
    const auto& options = dimension.options;
    auto found = std::find(options.begin(), options.end(), value);  // of [1, 1.0] that of the same type
    if (found == options.end())
      found = std::find_if(options.begin(), options.end(), [&](const Value& each) { return same_value(each, value); });
    if (found != options.end()) return static_cast<double>(found - options.begin());
    why = "one of";
    for (std::size_t i = 0; i < dimension.options.size() && i < 20; ++i)
      why += (i == 0 ? " " : ", ") + to_string(dimension.options[i]);
    if (dimension.options.size() > 20) why += ", …";
    return inactive;
  }
  double x = number(value);
  if (const auto* whole = std::get_if<std::int64_t>(&value); whole != nullptr && !converted_exactly<double>(*whole)) {
    why = "a number that a real one can hold: above 2^53 that is not every whole number";
    return inactive;
  }
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
    const double snapped = DomainPrior(info).snap(x);
    if (std::fabs(snapped - x) <= std::max(slack, 1e-9 * info.quantum)) return snapped;
  }
  if (info.quantum > 0 && !(info.quantum == 1 && info.kind == DomainKind::integer))
    why = detail::format("{} plus a multiple of {}, at most {}", info.lower, info.quantum, info.upper);
  else
    why = detail::format("a {} in [{}, {}]", info.kind == DomainKind::integer ? "whole number" : "number", info.lower,
                         info.upper);
  return inactive;
}

Value SpaceModel::value(std::size_t d, double coordinate) const {
  const auto& dimension = dimensions[d];
  if (dimension.has_options()) {
    const double last = static_cast<double>(dimension.options.size() - 1);
    return dimension.options[static_cast<std::size_t>(std::clamp(std::round(coordinate), 0.0, last))];
  }
  const double snapped = dimension.domain_prior.snap(coordinate);
  switch (dimension.type) {
    case ValueType::integer:  // a derived one has no bounds, and a record may contain anything
      return static_cast<std::int64_t>(std::clamp(snapped, -0x1p63, 0x1.fffffffffffffp62));
    case ValueType::boolean: return snapped != 0;
    case ValueType::real: break;
  }
  return snapped;
}

double SpaceModel::coordinate(std::size_t d, const Value& value) const {
  std::string why;
  const double x = find_coordinate(dimensions[d], value, why);
  if (!is_active(x))
    fail(Errc::space, "parameter '{}' cannot be {}: it must be {}", dimensions[d].name, to_string(value), why);
  return x;
}

Params SpaceModel::params(const Point& point, std::string_view scope) const {
  Params result;
  result.reserve(dimensions.size());
  for (const std::size_t d : declared) {
    const std::string& name = dimensions[d].name;
    if (d < point.size() && is_active(point[d]) && name.starts_with(scope))
      result.add(name.substr(scope.size()), value(d, point[d]));
  }
  return result;
}

bool Condition::holds(double coordinate) const {  // false for NaN, that is, if the parent is inactive
  if (range) return coordinate >= lower && coordinate <= upper;
  return std::find(values.begin(), values.end(), coordinate) != values.end();
}

double Dimension::quantile(double u) const {
  return from_unit ? domain_prior.snap(from_unit(u)) : domain_prior.from_unit(u);
}

double Dimension::probability(double x) const {
  return to_unit ? std::clamp(to_unit(x), 0.0, 1.0) : domain_prior.to_unit(x);
}

bool Constraint::allows(const SpaceModel& model, const Point& point) const try {
  return holds(model, point);
} catch (const Error&) { throw; } catch (const std::exception& e) {
  fail(Errc::space, "the constraint '{}' has thrown an exception: {}", name, e.what());
}

DimensionDraft::DimensionDraft() = default;
DimensionDraft::DimensionDraft(const DimensionDraft& other) = default;
DimensionDraft::DimensionDraft(DimensionDraft&& other) noexcept = default;
DimensionDraft& DimensionDraft::operator=(const DimensionDraft& other) = default;
DimensionDraft& DimensionDraft::operator=(DimensionDraft&& other) noexcept = default;
DimensionDraft::~DimensionDraft() = default;

void DimensionDraft::add_condition(std::string parent, std::vector<Value> values) {
  conditions.push_back({.parent = std::move(parent), .values = std::move(values)});
}

void DimensionDraft::add_condition(std::string parent, double lower, double upper) {
  conditions.push_back({.parent = std::move(parent), .values = {}, .range = true, .lower = lower, .upper = upper});
}

void DimensionDraft::add_belief(Value value, std::optional<double> amount) {
  beliefs.push_back({std::move(value), amount});
}

void DimensionDraft::put_on_lattice() {
  if (info.kind == DomainKind::integer && info.quantum == 0) info.quantum = 1;
  const double ratio =
      (info.upper - info.lower) / info.quantum;  // only a user's own domain may be off its lattice here
  if (!(info.quantum > 0 && ratio >= 0 && ratio < Lattice::max_count)) return;
  const Lattice lattice(info.lower, info.upper, info.quantum);
  info.upper = lattice.upper();
  info.options = static_cast<std::size_t>(lattice.count());
}

void DimensionDraft::refuse_range(const std::string& low, const std::string& high) {
  problem = detail::format("its values from {} to {} do not fit the member's type: use a wider one", low, high);
}

void DimensionDraft::refuse_range(double low, double high) {
  refuse_range(detail::format("{}", low), detail::format("{}", high));
}

}  // namespace hypertune::inline v0::detail
