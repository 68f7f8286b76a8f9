// Space: definitions.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/nearest.hpp>
#include <hypertune/error.hpp>
#include <hypertune/space/detail/build.hpp>
#include <hypertune/space/detail/dimension_error.hpp>
#include <hypertune/space/detail/model.hpp>
#include <hypertune/space/space.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

DimensionDraft prefixed(std::string_view prefix, DimensionDraft draft) {
  draft.name = detail::format("{}.{}", prefix, draft.name);
  draft.scope = detail::format("{}.{}", prefix, draft.scope);
  for (auto& condition : draft.conditions) condition.parent = detail::format("{}.{}", prefix, condition.parent);
  return draft;
}

std::size_t place_of(const SpaceModel& model, std::size_t i) { return model.declared[i]; }

void add_constraint(SpaceModel& model, const std::string& name,
                    std::function<bool(const SpaceModel&, const Point&)> holds) {
  auto constraints = std::move(model.constraints);
  constraints.push_back({name, std::move(holds)});
  add_constraints(model, std::move(constraints));
}

double accepted(const SpaceModel& model, std::size_t d, double x) {
  const auto& dimension = model.dimensions[d];
  const double coordinate = accept(dimension, x);
  if (!is_active(coordinate))
    fail_dimension(dimension.name, "the configuration has a value for it that lies outside its domain ({})",
                   dimension.grammar);
  return coordinate;
}

double snapped(const SpaceModel& model, std::size_t d, double x) { return model.dimensions[d].domain_prior.snap(x); }

Params params_of(const SpaceModel& model, const Point& point) { return model.params(point); }

Fixed fixed_at(const SpaceModel& model, std::string_view name, const Value& value) {
  const auto d = model.find(name);
  if (!d)
    fail(Errc::space, "there is no parameter '{}' in this space to fix{}", name,
         suggestion(name, names_of(model.dimensions)));
  const double x = model.coordinate(*d, value);
  std::vector<bool> gone(model.dimensions.size(), false);
  for (std::size_t i = 0; i < gone.size(); ++i)
    for (const auto& condition : model.dimensions[i].when)
      if (gone[condition.parent] || (condition.parent == *d && !condition.holds(x))) gone[i] = true;
  Fixed fixed{.x = x, .value = model.value(*d, x), .gone = {}};
  for (std::size_t i = 0; i < gone.size(); ++i) {
    fixed.gone.push_back(gone[model.declared[i]]);
    if (model.declared[i] == *d) fixed.place = i;
  }
  return fixed;
}

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

Nested<Params> nested(std::string_view prefix, const Space<Params>& inner) {
  Nested<Params> result;
  for (const auto& dim : inner.dims())
    result.dims.emplace_back(detail::prefixed(prefix, dim.draft()), nullptr, nullptr);
  for (const auto& rule : inner.rules())
    result.rules.push_back({detail::format("{}.{}", prefix, rule.name),
                            [start = detail::format("{}.", prefix), holds = rule.holds](const Params& params) {
                              Params own;
                              for (const auto& [name, value] : params)
                                if (name.starts_with(start)) own.add(name.substr(start.size()), value);
                              return holds(own);
                            }});
  return result;
}

}  // namespace hypertune::inline v0
