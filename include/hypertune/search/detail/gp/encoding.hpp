// The features of configurations for a Gaussian process.
#pragma once

#include <hypertune/space/detail/model.hpp>
#include <hypertune/space/search_space.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace hypertune::inline v0::detail::gp {

/// A configuration under construction: its coordinates in the unit cube (also of inactive dimensions, in case they
/// become active), the point of the space there, and its features.
struct Candidate {
  std::vector<double> unit;
  Point point;
  std::vector<double> features;
  double value = -std::numeric_limits<double>::infinity();  // of the acquisition
};

/// Maps configurations to features. A numeric or ordered dimension has its coordinate in the unit interval (for a
/// discrete value the middle of its cell, so that the kernel sees the value that will be run: Garrido-Merchan and
/// Hernandez-Lobato 2020). An unordered choice has the index of its option, compared for equality. An inactive
/// dimension has its middle (if unordered, a category of its own). What distinguishes inactive from active is the
/// parent's own feature if that is a choice, else an indicator of the condition. Both are distances in a Euclidean
/// embedding, so that the kernel stays positive definite. Constants and derived dimensions are left out.
class Encoding {
 public:
  enum class Kind : std::uint8_t { continuous, ordered, unordered };
  struct Dimension {
    std::size_t index;  // in the space
    Kind kind;
    std::size_t options = 0;  // of the discrete kinds
  };

  Encoding() = default;
  explicit Encoding(const SearchSpace& space) : space_(space) {
    const auto& model = space.model().dimensions;
    std::vector<std::vector<std::size_t>> seen;  // the parents of the conditions that have an indicator
    for (std::size_t d = 0; d < space.size(); ++d) {
      const DomainInfo& info = space.domain(d);
      if (info.kind == DomainKind::constant || info.kind == DomainKind::derived || info.options == 1 ||
          (info.options == 0 && !(info.upper > info.lower)))
        continue;
      const bool unordered = info.kind == DomainKind::categorical;
      // A fine lattice is treated as continuous; values are rounded when points are evaluated.
      const bool discrete = info.options > 0 || info.quantum > 0;
      const std::size_t options = discrete ? std::max<std::size_t>(info.options, 2) : 0;
      dimensions_.push_back({d, unordered ? Kind::unordered : discrete ? Kind::ordered : Kind::continuous, options});
      categorical_.push_back(unordered ? 1 : 0);
      if (model[d].when.empty()) continue;
      bool explained = true;  // the condition depends only on choices, which are features themselves
      std::vector<std::size_t> parents;
      for (const auto& condition : model[d].when) {
        explained = explained && space.domain(condition.parent).kind == DomainKind::categorical;
        parents.push_back(condition.parent);
      }
      const bool known = std::any_of(indicators_.begin(), indicators_.end(), [&](std::size_t other) {
        return model[other].when.size() == model[d].when.size() &&
               std::equal(model[other].when.begin(), model[other].when.end(), model[d].when.begin(),
                          [](const Condition& a, const Condition& b) {
                            return a.parent == b.parent && a.values == b.values && a.range == b.range &&
                                   a.lower == b.lower && a.upper == b.upper;
                          });
      });
      if (!explained && !known) indicators_.push_back(d);
    }
    categorical_.insert(categorical_.end(), indicators_.size(), std::uint8_t{1});
  }

  const std::vector<Dimension>& dimensions() const { return dimensions_; }
  const std::vector<std::uint8_t>& categorical() const { return categorical_; }  // by feature
  std::size_t features() const { return categorical_.size(); }
  const SearchSpace& space() const { return *space_; }

  /// The coordinate in the unit cube of option k of a discrete dimension.
  double unit_of(const Dimension& dimension, std::size_t k) const {
    const auto& own = space_->model().dimensions[dimension.index];
    const DomainInfo& info = own.info;
    if (own.has_options() || info.kind == DomainKind::categorical || info.kind == DomainKind::ordinal)
      return own.probability(static_cast<double>(k));
    const double quantum = info.quantum > 0 ? info.quantum : 1;
    return own.probability(own.domain_prior.snap(info.lower + static_cast<double>(k) * quantum));
  }
  std::size_t option_of(const Dimension& dimension, double coordinate) const {
    const auto& own = space_->model().dimensions[dimension.index];
    const DomainInfo& info = own.info;
    const bool indexed = own.has_options() || info.kind == DomainKind::categorical || info.kind == DomainKind::ordinal;
    const double quantum = info.quantum > 0 ? info.quantum : 1;
    const double k = indexed ? coordinate : (coordinate - info.lower) / quantum;
    return static_cast<std::size_t>(std::clamp(std::round(k), 0.0, static_cast<double>(dimension.options - 1)));
  }

  std::vector<double> features(const Point& point) const {
    std::vector<double> result(features());
    const auto& model = space_->model().dimensions;
    for (std::size_t i = 0; i < dimensions_.size(); ++i) {
      const std::size_t d = dimensions_[i].index;
      const bool active = is_active(point[d]);
      if (dimensions_[i].kind == Kind::unordered)
        result[i] = active ? point[d] : -1;
      else
        result[i] = active ? model[d].probability(point[d]) : 0.5;
    }
    for (std::size_t i = 0; i < indicators_.size(); ++i)
      result[dimensions_.size() + i] = is_active(point[indicators_[i]]) ? 1 : 0;
    return result;
  }

  /// Fills point and features from `unit`; false if the point violates a constraint.
  bool complete(Candidate& c, Rng& rng) const {
    c.point = space_->from_unit(c.unit, rng);
    if (!space_->feasible(c.point)) return false;
    c.features = features(c.point);
    // The coordinate itself instead of mapping it there and back, so that a small step is not lost to rounding.
    for (std::size_t i = 0; i < dimensions_.size(); ++i)
      if (dimensions_[i].kind == Kind::continuous && is_active(c.point[dimensions_[i].index]))
        c.features[i] = c.unit[dimensions_[i].index];
    return true;
  }
  /// The candidate of a point of the space.
  Candidate at(const Point& point) const {
    Candidate c{space_->to_unit(point), point, features(point)};
    for (double& u : c.unit)
      if (!(u >= 0)) u = 0.5;
    return c;
  }

 private:
  std::optional<SearchSpace> space_;
  std::vector<Dimension> dimensions_;    // those that are features
  std::vector<std::size_t> indicators_;  // dimensions with an indicator feature for being active
  std::vector<std::uint8_t> categorical_;
};

}  // namespace hypertune::inline v0::detail::gp
