// Evenly spaced numbers: the values of integers and quantised domains.
#pragma once

#include <cstdint>

namespace hypertune::inline v0::detail {

/// The points lower, lower + quantum, …, `count` of them. If lower and quantum are short decimals, the points are, too:
/// the third point of {0, 0.1} is 0.2 and the fourth 0.3, not 0.30000000000000004, so that values print and compare
/// well.
class Lattice {
 public:
  static constexpr double max_count = 9007199254740992.0;  // 2^53: beyond it, doubles skip whole numbers

  Lattice() = default;

  /// The points in [lower, upper]. Requires finite lower <= upper, quantum > 0 and (upper - lower) / quantum <
  /// max_count.
  Lattice(double lower, double upper, double quantum);

  double lower() const { return lower_; }
  double upper() const { return upper_; }
  double quantum() const { return quantum_; }
  double count() const { return last_ + 1; }

  /// The point with index k, from 0 to count-1.
  double at(double k) const;
  /// The index of the point nearest to x.
  double index(double x) const;

 private:
  double lower_ = 0, upper_ = 0, quantum_ = 1, last_ = 0;
  double base_ = 0, step_ = 0, scale_ = 0;  // point k is (base + k * step) / scale, all whole; scale 0: not decimal
};

}  // namespace hypertune::inline v0::detail
