// DomainPrior: maps between a domain's coordinates and the unit interval, by the quantiles of its prior.
#pragma once

#include <hypertune/space/detail/lattice.hpp>
#include <hypertune/space/detail/normal.hpp>
#include <hypertune/space/domain_info.hpp>

#include <cstdint>
#include <utility>

namespace hypertune::inline v0::detail {

/// The prior of one domain. Built from a valid DomainInfo (see check_domain() in build.hpp) and immutable.
class DomainPrior {
 public:
  DomainPrior() = default;

  explicit DomainPrior(const DomainInfo& info);

  /// The coordinate at quantile u (u outside [0, 1] counts as the nearer end, NaN as 0).
  double from_unit(double u) const;

  /// The inverse; a discrete coordinate maps to the middle of its cell.
  double to_unit(double x) const;

  /// The quantiles that map to the coordinate x: its cell, or a single point if the domain is continuous.
  std::pair<double, double> cell(double x) const;

  /// The coordinate of the domain nearest to x.
  double snap(double x) const;

 private:
  enum class Shape : std::uint8_t { point, options, linear, normal };

  double map(double x) const;
  double unmap(double y) const;

  /// The prior's cumulative probability at x.
  double cumulative(double x) const;

  Shape shape_ = Shape::point;
  bool log_ = false, quantised_ = false, mirrored_ = false;
  double lower_ = 0, upper_ = 0;
  double mean_ = 0, sd_ = 1;
  double first_ = 0, last_ = 1;  // linear: mapped ends; normal: cumulative probabilities of the ends
  Lattice lattice_;
};

}  // namespace hypertune::inline v0::detail
