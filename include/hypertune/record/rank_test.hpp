// Whether two samples differ by more than chance, without assumptions about their distributions.
#pragma once

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
  std::uint64_t seed = 0;    ///< for permutations and resamples, if there are too many to try all
};

/// The result of rank_test().
struct RankTest {
  /// The probability that a value drawn from the first sample is smaller than one from the second, ties counted half.
  /// 0.5: no difference; 1: all are smaller. (Mann-Whitney's U / nm; Vargha and Delaney's A.)
  double effect = 0.5;
  std::optional<Interval> interval;  ///< of the effect
  std::optional<double> p;           ///< two-sided; none if a sample has fewer than 2 values
  double least_p = 1;                ///< the smallest p that samples of these sizes can give
  std::string method;                ///< the name of the test
};

/// The Brunner-Munzel test of two independent samples (Brunner and Munzel, Biometrical Journal 42, 2000). It tests
/// whether P(a < b) + P(a = b) / 2 is one half, without Mann-Whitney's assumption that both distributions have the same
/// shape. With 10 or more values each it uses the t approximation, with an interval on the logit scale. With fewer, or
/// if the samples do not overlap, it uses the permutation test of its statistic (Neubert and Brunner, Computational
/// Statistics & Data Analysis 51, 2007) and Newcombe's interval (Statistics in Medicine 25, 2006, method 5). Infinite
/// values are ranked; NaN counts as positive infinity.
RankTest rank_test(std::span<const double> a, std::span<const double> b, const RankTestOptions& options = {});

/// The result of best_of().
struct BestOf {
  std::size_t draws = 0;
  double probability = 0.5;               ///< that the smallest draw from a is the smaller one; ties count half
  std::optional<Interval> interval;       ///< of the probability, by resampling
  double expected_a = 0, expected_b = 0;  ///< of the smallest draw; infinite if all draws may be failures
};

/// Compares the smallest of `draws` values drawn without replacement from each sample: what a search of that many
/// trials would have found. Probability and expectation are exact over all draws (the estimator of Tang et al., ACL
/// 2020, without the bias of drawing with replacement). The interval is the percentile bootstrap, which is valid for
/// smallest values if the draws are few compared with the sample (Bickel and Freedman, Annals of Statistics 9, 1981); a
/// quarter of the smaller sample is a good number. Error of kind `usage` for 0 draws, or more than a sample has.
BestOf best_of(std::span<const double> a, std::span<const double> b, std::size_t draws,
               const RankTestOptions& options = {});

/// The median; for an even number of values the middle of the two central ones; NaN if there are none.
double median(std::span<const double> values);

/// The percentile bootstrap interval of median(a) - median(b). None with fewer than 5 values each, or if one is not
/// finite.
std::optional<Interval> median_difference(std::span<const double> a, std::span<const double> b,
                                          const RankTestOptions& options = {});

/// Holm's step-down correction (Scandinavian Journal of Statistics 6, 1979) of several p values, in place.
void holm(std::span<double> p);

}  // namespace hypertune::inline v0
