// Whole numbers from arbitrary numbers.
#pragma once

#include <algorithm>

namespace hypertune::inline v0::detail {

/// `value` without its fraction, within [low, high]; `low` if it is NaN. The range is applied before the cast, because
/// a cast of a value that an int cannot hold is undefined.
constexpr int whole_within(double value, int low, int high) {
  return value > low ? static_cast<int>(std::min(value, static_cast<double>(high))) : low;
}

}  // namespace hypertune::inline v0::detail
