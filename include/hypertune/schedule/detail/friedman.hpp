// Whether one of several series is worse than the best of them, block by block.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/schedule/detail/paired_tests.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace hypertune::inline v0::detail {

/// Friedman's test by ranks with Conover's comparison after it (W. J. Conover, "Practical Nonparametric Statistics",
/// 3rd edition 1999, section 5.8), as F-Race uses them: the probability of results as these if series `judged` were as
/// good as the one with the least sum of ranks, given that any differ; the larger one of both tests'. `series`: three
/// or more, of equal length, one value per block, less is better. 1 where `judged` is the best. Values are compared
/// within a block alone, so that blocks need no scale in common; infinite ones are fine.
double friedman_worse(const std::vector<std::span<const double>>& series, std::size_t judged);

}  // namespace hypertune::inline v0::detail

#ifndef HYPERTUNE_COMPILED
#include <hypertune/schedule/detail/impl/friedman.hpp>
#endif
