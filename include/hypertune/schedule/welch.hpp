// Welch's t-test: whether one sample's mean is below another's, by more than chance.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/schedule/detail/paired_tests.hpp>

#include <cmath>
#include <span>

namespace hypertune::inline v0::detail {

/// The probability that samples as far apart as these, a below b, come from equal means: one-sided. 1 where either has
/// fewer than two values, or one that is not finite.
double welch_less(std::span<const double> a, std::span<const double> b);

}  // namespace hypertune::inline v0::detail

#ifndef HYPERTUNE_COMPILED
#include <hypertune/schedule/impl/welch.hpp>
#endif
