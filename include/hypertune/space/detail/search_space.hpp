// The member functions of SearchSpace. Included by space/search_space.hpp.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/nearest.hpp>
#include <hypertune/space/detail/grammar.hpp>
#include <hypertune/space/detail/model.hpp>
#include <hypertune/space/search_space.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {
namespace detail {

/// Whether two results of the same computation may be taken for equal.
inline bool near(double a, double b) { return std::fabs(a - b) <= 1e-9 * std::max(std::fabs(a), std::fabs(b)); }

}  // namespace detail

std::size_t SearchSpace::size() const { return model_->dimensions.size(); }
const std::string& SearchSpace::name(std::size_t dimension) const { return model_->dimensions[dimension].name; }
const DomainInfo& SearchSpace::domain(std::size_t dimension) const { return model_->dimensions[dimension].info; }
std::optional<std::size_t> SearchSpace::index_of(std::string_view name) const { return model_->find(name); }
bool SearchSpace::active(std::size_t dimension, const Point& point) const { return model_->active(dimension, point); }
bool SearchSpace::conditional(std::size_t dimension) const { return !model_->dimensions[dimension].when.empty(); }

template <class Quantile>
Point SearchSpace::draw(Rng& rng, const Quantile& quantile) const {
  constexpr int tries = 10'000;
  Point point(size());
  std::vector<int> refusals;  // by constraint
  for (int i = 0; i < tries; ++i) {
    std::fill(point.begin(), point.end(), inactive);
    for (std::size_t d = 0; d < point.size(); ++d) {
      const double u = uniform01(rng);  // drawn even if inactive, so that the others do not depend on it
      point[d] = active(d, point) ? model_->draw(d, quantile(d, u), point, rng) : inactive;
    }
    const auto& constraints = model_->constraints;
    std::size_t c = 0;
    while (c < constraints.size() && constraints[c].allows(*model_, point)) ++c;
    if (c == constraints.size()) return point;
    refusals.resize(constraints.size());
    ++refusals[c];
  }
  const auto worst = static_cast<std::size_t>(std::max_element(refusals.begin(), refusals.end()) - refusals.begin());
  fail(Errc::space,
       "no configuration met the constraints in {} draws; '{}' refused {} of them: widen the bounds or loosen the "
       "constraint",
       tries, model_->constraints[worst].name, refusals[worst]);
}

bool SearchSpace::has_prior() const { return model_->has_prior; }

Point SearchSpace::sample(Rng& rng) const {
  return draw(rng, [](std::size_t, double u) { return u; });
}

Point SearchSpace::sample_prior(Rng& rng) const {
  return draw(rng, [this](std::size_t d, double u) { return model_->dimensions[d].prior.quantile(u); });
}

double SearchSpace::log_prior(const Point& point) const {
  if (!model_->has_prior) return 0;
  double sum = 0;
  for (std::size_t d = 0; d < size() && d < point.size(); ++d) {
    const auto& dimension = model_->dimensions[d];
    if (dimension.prior.empty() || !is_active(point[d])) continue;
    const auto [low, high] = dimension.cell(point[d]);
    sum += dimension.prior.log_density(low, high);
  }
  return sum;
}

std::optional<double> SearchSpace::prior_center(std::size_t dimension) const {
  const auto& prior = model_->dimensions[dimension].prior;
  return prior.empty() ? std::nullopt : std::optional(prior.center());
}

Point SearchSpace::from_unit(std::span<const double> unit, Rng& rng) const {
  if (unit.size() != size())
    fail(Errc::usage, "from_unit() was given {} numbers, but the space has {} dimensions", unit.size(), size());
  Point point(size(), inactive);
  for (std::size_t d = 0; d < point.size(); ++d)
    point[d] = active(d, point) ? model_->draw(d, unit[d], point, rng) : inactive;
  return point;
}

std::vector<double> SearchSpace::to_unit(const Point& point) const {
  std::vector<double> unit(size(), inactive);
  for (std::size_t d = 0; d < unit.size() && d < point.size(); ++d)
    if (is_active(point[d])) unit[d] = model_->dimensions[d].probability(point[d]);
  return unit;
}

bool SearchSpace::feasible(const Point& point) const {
  for (const auto& constraint : model_->constraints)
    if (!constraint.allows(*model_, point)) return false;
  return true;
}

std::optional<std::string> SearchSpace::violated(const Point& point) const {
  for (const auto& constraint : model_->constraints)
    if (!constraint.allows(*model_, point)) return constraint.name;
  return std::nullopt;
}

std::uint64_t SearchSpace::grid_size() const {
  std::uint64_t size = 1;
  for (const std::size_t d : model_->grid) size *= model_->dimensions[d].info.options;  // limited by build_model()
  return size;
}

std::optional<std::uint64_t> SearchSpace::cardinality() const {
  std::uint64_t size = 1;
  for (const auto& dimension : model_->dimensions) {
    if (dimension.info.options == 0 || !dimension.when.empty()) return std::nullopt;
    if (__builtin_mul_overflow(size, std::uint64_t{dimension.info.options}, &size)) return std::nullopt;
  }
  return size;
}

void SearchSpace::set_grid(Point& point, std::uint64_t index) const {
  if (model_->grid.empty()) return;
  std::uint64_t seed = index;
  for (const double x : point) seed = (seed ^ std::bit_cast<std::uint64_t>(x)) * 0x9e3779b97f4a7c15U;
  for (auto d = model_->grid.rbegin(); d != model_->grid.rend(); ++d) {
    const std::uint64_t options = model_->dimensions[*d].info.options;
    point[*d] = static_cast<double>(index % options);
    index /= options;
  }
  const Point before = std::exchange(point, Point(size(), inactive));
  std::optional<Rng> rng;  // costly to seed and rarely needed
  for (std::size_t d = 0; d < point.size(); ++d) {
    if (!active(d, point)) continue;
    point[d] = before[d];
    if (is_active(before[d]) && !model_->dimensions[d].derive) continue;
    if (!rng) rng = derived_rng(seed, {});
    point[d] = inactive;
    const double u = uniform01(*rng);
    point[d] = model_->draw(d, u, point, *rng);
  }
}

Params SearchSpace::params(const Point& point) const { return model_->params(point); }

double SearchSpace::computed(std::size_t dimension, const Point& point) const {
  static thread_local Rng unused(0);  // a formula draws nothing
  try {
    return model_->draw(dimension, 0, point, unused);
  } catch (const Error&) { throw; } catch (const std::exception& e) {
    fail(Errc::space, "parameter '{}': its callable has thrown an exception: {}", name(dimension), e.what());
  }
}

Point SearchSpace::point(const Params& params) const {
  for (const auto& [name, value] : params)
    if (!model_->find(name))
      fail(Errc::space, "there is no parameter '{}' in this space{}", name,
           detail::suggestion(name, detail::names_of(model_->dimensions)));
  Point point(size(), inactive);
  for (std::size_t d = 0; d < point.size(); ++d) {
    const auto& dimension = model_->dimensions[d];
    const Value* value = params.find(dimension.name);
    if (!active(d, point)) {
      if (value != nullptr)
        fail(Errc::space, "parameter '{}' = {} is given, but its condition does not hold: leave it out", dimension.name,
             to_string(*value));
    } else if (dimension.formula) {
      const double follows = computed(d, point);
      if (value != nullptr && !detail::near(model_->coordinate(d, *value), follows))
        fail(Errc::space, "parameter '{}' = {} is given, but it is derived, and {} here: leave it out", dimension.name,
             to_string(*value), text(d, follows));
      point[d] = follows;
    } else if (value != nullptr) {
      point[d] = model_->coordinate(d, *value);
    } else if (dimension.info.kind == DomainKind::constant) {
      point[d] = 0;
    } else {
      fail(Errc::space, "parameter '{}' has no value: give it one", dimension.name);
    }
  }
  return point;
}

Point SearchSpace::configuration(const Params& params) const {
  Point point = this->point(params);
  if (const auto constraint = violated(point))
    fail(Errc::space, "the configuration {} violates the constraint '{}'", params, *constraint);
  return point;
}

std::string SearchSpace::text(std::size_t dimension, double coordinate) const {
  return is_active(coordinate) ? to_string(model_->value(dimension, coordinate)) : "-";
}

std::string SearchSpace::describe() const {
  std::string text;
  for (const std::size_t d : model_->declared) text += detail::describe(model_->dimensions[d], *model_) + "\n";
  if (!model_->constraints.empty()) {
    text += "constraints: [";
    for (std::size_t i = 0; i < model_->constraints.size(); ++i)
      text += (i == 0 ? "" : ", ") + detail::quoted(model_->constraints[i].name);
    text += "]\n";
  }
  return text;
}

std::optional<std::string> SearchSpace::invalid(const Point& point) const {
  if (point.size() != size())
    return detail::format("a point of this space has {} coordinates, not {}", size(), point.size());
  for (std::size_t d = 0; d < point.size(); ++d) {
    const auto& dimension = model_->dimensions[d];
    const bool wanted = active(d, point);
    if (wanted != is_active(point[d]))
      return detail::format("parameter '{}' has {}", dimension.name,
                            wanted ? "no value though it is active" : "a value though its condition does not hold");
    if (!wanted) continue;
    const double snapped = dimension.domain_prior.snap(point[d]);
    if (!std::isfinite(point[d]) ||
        std::fabs(snapped - point[d]) > 1e-9 * std::max(std::fabs(snapped), dimension.info.quantum))
      return detail::format("parameter '{}' cannot have the coordinate {}; the nearest that it can have is {}",
                            dimension.name, point[d], snapped);
  }
  if (std::none_of(model_->dimensions.begin(), model_->dimensions.end(), [](const auto& d) { return d.formula; }))
    return std::nullopt;
  Point earlier(size(), inactive);
  for (std::size_t d = 0; d < point.size(); ++d) {
    const auto& dimension = model_->dimensions[d];
    if (dimension.formula && is_active(point[d]))
      if (const double follows = computed(d, earlier); !detail::near(point[d], follows))
        return detail::format("parameter '{}' is {}, but it is derived, and {} here", dimension.name, text(d, point[d]),
                              text(d, follows));
    earlier[d] = point[d];
  }
  return std::nullopt;
}

}  // namespace hypertune::inline v0
