// The map between a domain's coordinates and the unit interval: definitions.
#pragma once

#include <hypertune/space/detail/domain_prior.hpp>

#include <algorithm>
#include <cmath>

namespace hypertune::inline v0::detail {

DomainPrior::DomainPrior(const DomainInfo& info) : lower_(info.lower), upper_(info.upper) {
  if (info.kind == DomainKind::ordinal || info.kind == DomainKind::categorical) {
    shape_ = Shape::options;
    lattice_ = Lattice(0, static_cast<double>(info.options) - 1, 1);
    return;
  }
  if (info.kind == DomainKind::constant || info.kind == DomainKind::derived) {
    shape_ = Shape::point;
    return;
  }
  log_ = info.log;
  quantised_ = info.quantum > 0;
  if (quantised_) lattice_ = Lattice(info.lower, info.upper, info.quantum);
  double low = lower_;
  double high = upper_;
  if (quantised_) {
    low -= info.quantum / 2;
    high += info.quantum / 2;
    // On a logarithmic scale the first cell must not reach down to zero: its lower half mirrors its upper half.
    if (log_ && lower_ < info.quantum) low = lower_ * lower_ / (lower_ + info.quantum / 2);
  }
  if (info.mean) {
    shape_ = Shape::normal;
    mean_ = *info.mean;
    sd_ = *info.sd;
    low = (map(low) - mean_) / sd_;
    high = (map(high) - mean_) / sd_;
    mirrored_ = low > 0;  // erfc is precise in the lower tail
    first_ = normal_cdf(mirrored_ ? -high : low);
    last_ = normal_cdf(mirrored_ ? -low : high);
  } else if (!quantised_ || log_) {
    shape_ = Shape::linear;
    first_ = map(low);
    last_ = map(high);
  } else {
    shape_ = Shape::options;
  }
}

double DomainPrior::from_unit(double u) const {
  u = u > 0 ? std::min(u, 1.0) : 0.0;
  switch (shape_) {
    case Shape::point: return lower_;
    case Shape::options: return lattice_.at(std::min(std::floor(u * lattice_.count()), lattice_.count() - 1));
    case Shape::linear: return snap(unmap(std::lerp(first_, last_, u)));
    case Shape::normal: {
      const double p = std::lerp(first_, last_, mirrored_ ? 1 - u : u);
      const double z = normal_quantile(std::clamp(p, first_ > 0 ? first_ : 0x1p-53, 1 - 0x1p-53));
      return snap(unmap(mean_ + sd_ * (mirrored_ ? -z : z)));
    }
  }
  return lower_;
}

double DomainPrior::to_unit(double x) const {
  if (shape_ == Shape::point) return 0.5;
  if (shape_ == Shape::options) return (lattice_.index(x) + 0.5) / lattice_.count();
  x = std::clamp(x, lower_, upper_);
  if (!quantised_) return cumulative(x);
  const auto [low, high] = cell(x);
  return low + (high - low) / 2;
}

std::pair<double, double> DomainPrior::cell(double x) const {
  if (shape_ == Shape::point) return {0.0, 1.0};
  const double k = lattice_.index(x);
  if (shape_ == Shape::options) return {k / lattice_.count(), (k + 1) / lattice_.count()};
  if (!quantised_) return {cumulative(std::clamp(x, lower_, upper_)), cumulative(std::clamp(x, lower_, upper_))};
  const double half = lattice_.quantum() / 2;
  return {k == 0 ? 0.0 : cumulative(lattice_.at(k) - half),
          k + 1 == lattice_.count() ? 1.0 : cumulative(lattice_.at(k) + half)};
}

double DomainPrior::snap(double x) const {
  if (quantised_ || shape_ == Shape::options) return lattice_.at(lattice_.index(x));
  if (shape_ == Shape::point) return x;
  return std::clamp(x, lower_, upper_);
}

double DomainPrior::cumulative(double x) const {
  double u = 0;
  if (shape_ == Shape::normal) {
    const double z = (map(x) - mean_) / sd_;
    u = (normal_cdf(mirrored_ ? -z : z) - first_) / (last_ - first_);
    if (mirrored_) u = 1 - u;
  } else if (last_ > first_) {
    u = (map(x) / 2 - first_ / 2) / (last_ / 2 - first_ / 2);  // halves, because the width may overflow
  } else {
    u = 0.5;
  }
  return std::clamp(u, 0.0, 1.0);
}

double DomainPrior::map(double x) const { return log_ ? std::log(x) : x; }

double DomainPrior::unmap(double y) const { return log_ ? std::exp(y) : y; }

}  // namespace hypertune::inline v0::detail
