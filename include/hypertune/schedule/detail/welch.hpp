// Welch's t-test: whether the mean of one sample is significantly below another's.
#pragma once

#include <hypertune/schedule/detail/paired_tests.hpp>

#include <span>

namespace hypertune::inline v0::detail {

/// The one-sided p-value: the probability that samples as far apart as these, a below b, come from equal means. 1 if
/// either has fewer than two values, or a value that is not finite.
double welch_less(std::span<const double> a, std::span<const double> b);

}  // namespace hypertune::inline v0::detail
