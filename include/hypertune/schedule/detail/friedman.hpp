// Tests whether one of several paired series is worse than the best of them.
#pragma once

#include <hypertune/schedule/detail/paired_tests.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace hypertune::inline v0::detail {

/// Friedman's test by ranks, followed by Conover's comparison (W. J. Conover, "Practical Nonparametric Statistics", 3rd
/// edition 1999, section 5.8), as in F-Race. Returns the larger p-value of the two: the probability of such results if
/// series `judged` were as good as the one with the least sum of ranks. `series`: three or more, of equal length, one
/// value per block, less is better. Returns 1 if `judged` is the best. Values are compared only within a block, so that
/// blocks need no common scale; infinite values are allowed.
double friedman_worse(const std::vector<std::span<const double>>& series, std::size_t judged);

}  // namespace hypertune::inline v0::detail
