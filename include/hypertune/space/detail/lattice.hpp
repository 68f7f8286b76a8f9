// Evenly spaced numbers: the values of integers and quantised domains.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace hypertune::detail {

/// lower, lower + quantum, … up to `count` points. Where lower and quantum are short decimals the points are too: the
/// third point of {0, 0.1} is 0.2 and the fourth 0.3, not 0.30000000000000004, so that values print and compare well.
class Lattice {
 public:
  static constexpr double max_count = 9007199254740992.0;  // 2^53: beyond it, doubles skip whole numbers

  Lattice() = default;

  /// The points in [lower, upper]; needs finite lower <= upper, quantum > 0 and (upper - lower) / quantum < max_count.
  Lattice(double lower, double upper, double quantum) : lower_(lower), quantum_(quantum) {
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

  double lower() const { return lower_; }
  double upper() const { return upper_; }
  double quantum() const { return quantum_; }
  double count() const { return last_ + 1; }

  /// The point of index k, in 0 … count-1.
  double at(double k) const {
    const double x = scale_ > 0 ? (base_ + k * step_) / scale_ : lower_ + k * quantum_;
    return std::clamp(x, lower_, upper_);
  }
  /// The index of the point nearest to x.
  double index(double x) const { return std::clamp(std::round((x - lower_) / quantum_), 0.0, last_); }

 private:
  double lower_ = 0, upper_ = 0, quantum_ = 1, last_ = 0;
  double base_ = 0, step_ = 0, scale_ = 0;  // point k is (base + k * step) / scale, all whole; scale 0: not decimal
};

}  // namespace hypertune::detail
