// Evenly spaced numbers: definitions.
#pragma once

#include <hypertune/space/detail/lattice.hpp>

#include <algorithm>
#include <cmath>

namespace hypertune::inline v0::detail {

Lattice::Lattice(double lower, double upper, double quantum) : lower_(lower), quantum_(quantum) {
  const double ratio = (upper - lower) / quantum;
  const double nearest = std::round(ratio);
  const bool whole = std::fabs(ratio - nearest) <= std::max(1e-9, ratio * 1e-15);
  last_ = whole ? nearest : std::floor(ratio);
  for (double scale = 1; scale <= 1e9; scale *= 10) {
    const double base = std::round(lower * scale);
    const double step = std::round(quantum * scale);
    if (base / scale != lower || step / scale != quantum) continue;
    if (std::fabs(base) + (last_ + 1) * step >= max_count) break;
    base_ = base;
    step_ = step;
    scale_ = scale;
    break;
  }
  upper_ = upper;
  upper_ = at(last_);
}

double Lattice::at(double k) const {
  const double x = scale_ > 0 ? (base_ + k * step_) / scale_ : lower_ + k * quantum_;
  return std::clamp(x, lower_, upper_);
}

double Lattice::index(double x) const { return std::clamp(std::round((x - lower_) / quantum_), 0.0, last_); }

}  // namespace hypertune::inline v0::detail
