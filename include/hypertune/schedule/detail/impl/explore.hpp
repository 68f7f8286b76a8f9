// Explore: definitions.
#pragma once

#include <hypertune/schedule/detail/explore.hpp>
#include <hypertune/space/detail/model.hpp>

#include <algorithm>
#include <cmath>

namespace hypertune::inline v0::detail {

std::vector<std::size_t> mutable_dimensions(const SearchSpace& space, const std::vector<std::string>& names,
                                            const char* who) {
  const auto changes = [&](std::size_t d) {
    const DomainKind kind = space.domain(d).kind;
    return kind != DomainKind::constant && kind != DomainKind::derived;
  };
  std::vector<std::size_t> dimensions;
  if (names.empty()) {
    for (std::size_t d = 0; d < space.size(); ++d)
      if (changes(d) && !space.domain(d).grid) dimensions.push_back(d);
    return dimensions;
  }
  for (const auto& name : names) {
    const auto d = space.index_of(name);
    if (!d) fail(Errc::usage, "{}: mutate names '{}', but the space has no such parameter", who, name);
    if (!changes(*d)) fail(Errc::usage, "{}: mutate names '{}', which is constant or derived", who, name);
    dimensions.push_back(*d);
  }
  return dimensions;
}

double perturbed(const DomainInfo& info, double x, double factor) {
  double y = x * factor;
  const double width = info.upper - info.lower;
  if (x == 0 && std::isfinite(width)) y = (factor - 1) * width / 2;
  const double quantum = info.quantum > 0 ? info.quantum : info.kind == DomainKind::integer ? 1 : 0;
  const double direction = y < x ? -1 : 1;
  if (quantum > 0) y = x + direction * std::max(1.0, std::round(std::abs(y - x) / quantum)) * quantum;
  return std::clamp(y, info.lower, info.upper);
}

Point explored(const SearchSpace& space, const Point& from, const std::vector<std::size_t>& dimensions, double resample,
               double factor, Rng& rng) {
  constexpr int tries = 100;
  for (int i = 0; i < tries; ++i) {
    std::vector<double> unit = space.to_unit(from);
    for (double& u : unit)
      if (!is_active(u)) u = uniform01(rng);  // in case it becomes active
    for (const std::size_t d : dimensions) {
      const bool anew = uniform01(rng) < resample;
      const double draw = uniform01(rng);
      if (anew) {
        unit[d] = draw;
        continue;
      }
      if (!is_active(from[d])) continue;
      const auto& dimension = space.model().dimensions[d];
      const DomainInfo& info = dimension.info;
      double x = from[d];
      if (info.kind == DomainKind::ordinal)
        x = std::clamp(x + (draw < 0.5 ? -1.0 : 1.0), 0.0, static_cast<double>(info.options) - 1);
      else if (info.kind == DomainKind::real || info.kind == DomainKind::integer)
        x = perturbed(info, x, draw < 0.5 ? 2 - factor : factor);
      else
        continue;
      unit[d] = dimension.probability(dimension.domain_prior.snap(x));
    }
    Point point = space.from_unit(unit, rng);
    if (space.feasible(point)) return point;
  }
  return from;
}

}  // namespace hypertune::inline v0::detail
