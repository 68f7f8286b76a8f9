// Point: a configuration as searchers see it.
#pragma once

#include <limits>
#include <vector>

namespace hypertune::inline v0 {

/// One configuration as coordinates, one per dimension of the space: a numeric parameter's own value, the index of a
/// choice's option, or NaN if a conditional dimension is not active.
using Point = std::vector<double>;

inline constexpr double inactive = std::numeric_limits<double>::quiet_NaN();
inline bool is_active(double coordinate) { return coordinate == coordinate; }

}  // namespace hypertune::inline v0
