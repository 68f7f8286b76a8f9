// Whether two samples differ by more than chance, where nothing is known of their distributions.
#pragma once

#include <hypertune/detail/linkage.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace hypertune::inline v0 {

/// From `low` to `high`.
struct Interval {
  double low = 0, high = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

struct RankTestOptions {
  double confidence = 0.95;  ///< of the intervals, between 0 and 1
  std::uint64_t seed = 0;    ///< of permutations and resamples where there are too many to try each
};

/// What rank_test() found.
struct RankTest {
  /// The probability that a value drawn from the first sample is smaller than one from the second, ties counted half:
  /// 0.5 is no difference, 1: each is smaller. (Mann-Whitney's U / nm; Vargha and Delaney's A.)
  double effect = 0.5;
  std::optional<Interval> interval;  ///< of the effect
  std::optional<double> p;           ///< two-sided; none where a sample has fewer than 2 values
  double least_p = 1;                ///< that these numbers of values can give at all
  std::string method;                ///< which test, in words
};

/// The Brunner-Munzel test of two independent samples (Brunner and Munzel, Biometrical Journal 42, 2000): of
/// P(a < b) + P(a = b) / 2 being one half, without Mann-Whitney's assumption that the two distributions have the same
/// shape. From 10 values each it uses the t approximation with an interval on the logit scale, below that the
/// permutation test of its statistic (Neubert and Brunner, Computational Statistics & Data Analysis 51, 2007) and
/// Newcombe's interval (Statistics in Medicine 25, 2006, method 5), which also hold where the samples do not overlap.
/// Infinite values are ranked; NaN counts as positive infinity.
RankTest rank_test(std::span<const double> a, std::span<const double> b, const RankTestOptions& options = {});

/// What best_of() found.
struct BestOf {
  std::size_t draws = 0;
  double probability = 0.5;               ///< that the smallest of the first's draws is smaller, ties counted half
  std::optional<Interval> interval;       ///< of the probability, by resampling
  double expected_a = 0, expected_b = 0;  ///< smallest of so many draws; infinite where failures fill them
};

/// Compares the smallest of `draws` values drawn without replacement from each sample: what a search of so many trials
/// would have ended with. Probability and expectation are exact over all draws (the estimator of Tang et al., ACL
/// 2020, without the bias of drawing with replacement), the interval is the percentile bootstrap, which holds for
/// smallest values where the draws are few beside the sample (Bickel and Freedman, Annals of Statistics 9, 1981): a
/// quarter of the smaller sample is a good number. Error of kind `usage` for 0 draws, or more than a sample has.
BestOf best_of(std::span<const double> a, std::span<const double> b, std::size_t draws,
               const RankTestOptions& options = {});

/// The median; of an even number the middle of the two. NaN of none.
double median(std::span<const double> values);

/// The percentile bootstrap's interval of median(a) - median(b). None below 5 values each, or where one is not finite.
std::optional<Interval> median_difference(std::span<const double> a, std::span<const double> b,
                                          const RankTestOptions& options = {});

/// Holm's step-down correction (Scandinavian Journal of Statistics 6, 1979) of several p values, in their places.
void holm(std::span<double> p);

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/record/impl/rank_test.hpp>
#endif
