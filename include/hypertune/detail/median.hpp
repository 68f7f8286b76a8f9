// The median of numbers.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

namespace hypertune::inline v0::detail {

/// The upper one of the two in the middle, where there are two; 0 of none.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace hypertune::inline v0::detail
