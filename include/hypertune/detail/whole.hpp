// Whole numbers from numbers of which nothing is known.
#pragma once

#include <algorithm>

namespace hypertune::inline v0::detail {

/// `value` without its fraction, within [low, high]; `low` where it is NaN. A cast of what an int cannot hold is
/// undefined, so that the range comes first.
constexpr int whole_within(double value, int low, int high) {
  return value > low ? static_cast<int>(std::min(value, static_cast<double>(high))) : low;
}

}  // namespace hypertune::inline v0::detail
