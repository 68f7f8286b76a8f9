// Included by rank_test.hpp.
#pragma once

#include <hypertune/detail/stable_sort.hpp>
#include <hypertune/error.hpp>
#include <hypertune/random.hpp>
#include <hypertune/record/rank_test.hpp>

#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail::ranks {

inline constexpr std::size_t enough_for_t = 10;    // as Brunner and Munzel recommend
inline constexpr double max_permutations = 20000;  // up to this number, all permutations are tried
inline constexpr double max_work = 2e7;            // limit of values that permutations or resamples look at

inline std::vector<double> sorted(std::span<const double> values) {
  std::vector<double> out(values.begin(), values.end());
  for (double& value : out)
    if (std::isnan(value)) value = std::numeric_limits<double>::infinity();
  std::sort(out.begin(), out.end());
  return out;
}

/// Both samples in one sorted order: which sample each value is from, and where groups of equal values end.
struct Pooled {
  std::vector<char> first;           // by place: whether the value is from the first sample
  std::vector<std::size_t> borders;  // where each group of equal values ends
};

inline Pooled pooled(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<std::pair<double, char>> all;
  for (const double value : a) all.emplace_back(value, 1);
  for (const double value : b) all.emplace_back(value, 0);
  std::sort(all.begin(), all.end());
  Pooled out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    out.first.push_back(all[i].second);
    if (i + 1 == all.size() || all[i + 1].first != all[i].first) out.borders.push_back(i + 1);
  }
  return out;
}

/// The statistic's parts for one assignment of places to samples.
struct Statistic {
  double effect, variance, freedom;
  /// Infinite if the samples do not overlap, because the variance is then 0.
  double t() const {
    if (variance > 0) return (effect - 0.5) / std::sqrt(variance);
    return effect == 0.5 ? 0 : std::copysign(std::numeric_limits<double>::infinity(), effect - 0.5);
  }
};

inline Statistic statistic(const std::vector<char>& first, const std::vector<std::size_t>& borders, double n,
                           double m) {
  // Placements: the share of the other sample above a value of a (below a value of b); ties count half.
  double sum_a = 0, squares_a = 0, sum_b = 0, squares_b = 0, before_a = 0, before_b = 0;
  std::size_t at = 0;
  for (const std::size_t border : borders) {
    double in_a = 0;
    const auto size = static_cast<double>(border - at);
    for (; at < border; ++at) in_a += first[at];
    const double in_b = size - in_a;
    const double above = (m - before_b - in_b / 2) / m, below = (before_a + in_a / 2) / n;
    sum_a += in_a * above;
    squares_a += in_a * above * above;
    sum_b += in_b * below;
    squares_b += in_b * below * below;
    before_a += in_a;
    before_b += in_b;
  }
  const double effect = sum_a / n;
  const auto variance = [](double sum, double squares, double count) {
    return count < 2 ? 0 : std::max(0.0, (squares - sum * sum / count) / (count - 1)) / count;
  };
  double va = variance(sum_a, squares_a, n), vb = variance(sum_b, squares_b, m);
  if (va + vb < 1e-14) va = vb = 0;  // the rest is rounding error
  const double freedom = va + vb > 0 ? (va + vb) * (va + vb) / (va * va / (n - 1) + vb * vb / (m - 1)) : 1;
  return {effect, va + vb, freedom};
}

/// log of the number of ways to choose k of n.
inline double log_choose(double n, double k) {
  return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
}

inline double permutation_p(Pooled pool, double n, double m, std::uint64_t seed, bool& exact) {
  constexpr double rounding = 1e-9;
  const double seen = std::fabs(statistic(pool.first, pool.borders, n, m).t()) * (1 - rounding);
  double extreme = 0, tried = 0;
  const auto count = [&] {
    tried += 1;
    extreme += std::fabs(statistic(pool.first, pool.borders, n, m).t()) >= seen ? 1 : 0;
  };
  const double size = n + m;
  exact = log_choose(size, n) <= std::log(max_permutations) + rounding;
  if (exact) {
    std::sort(pool.first.begin(), pool.first.end());
    do count();
    while (std::next_permutation(pool.first.begin(), pool.first.end()));
    return extreme / tried;
  }
  Rng random = derived_rng(seed, {pool.first.size()});
  for (double times = std::clamp(max_work / size, 999.0, max_permutations); times > 0; --times) {
    for (std::size_t i = pool.first.size(); i > 1; --i)
      std::swap(pool.first[i - 1], pool.first[static_cast<std::size_t>(uniform01(random) * static_cast<double>(i))]);
    count();
  }
  return (extreme + 1) / (tried + 1);  // the observed assignment is one of them
}

inline double normal_quantile(double confidence) {
  return boost::math::quantile(boost::math::normal_distribution<double>(), 0.5 + confidence / 2);
}

/// Newcombe's method 5: the values t for which |effect - t| is at most z standard errors, which depend on t.
inline Interval newcombe(double effect, double n, double m, double confidence) {
  const double z = normal_quantile(confidence), more = (n + m) / 2 - 1;
  const auto too_far = [&](double t) {
    const double variance = t * (1 - t) * (1 + more * ((1 - t) / (2 - t) + t / (1 + t))) / (m * n);
    return (effect - t) * (effect - t) > z * z * variance;
  };
  const auto border = [&](double outside, double inside) {
    if (!too_far(outside)) return outside;
    for (int i = 0; i < 60; ++i) {
      const double middle = (outside + inside) / 2;
      (too_far(middle) ? outside : inside) = middle;
    }
    return inside;
  };
  const double inside = std::clamp(effect, 1e-9, 1 - 1e-9);
  return {effect == 0 ? 0 : border(0, inside), effect == 1 ? 1 : border(1, inside)};
}

/// The probability of each place in `size` sorted values to be the smallest of `draws` drawn without replacement.
inline std::vector<double> smallest_at(std::size_t size, std::size_t draws) {
  std::vector<double> chances;
  double left = 1;  // probability that all draws are at this place or after it
  for (std::size_t i = 0; i < size && left > 0; ++i) {
    const double behind = static_cast<double>(size - i - std::min(size - i, draws)) / static_cast<double>(size - i);
    chances.push_back(left * (1 - behind));
    left *= behind;
  }
  chances.resize(size);
  return chances;
}

/// P(smallest of a < smallest of b), ties half. Both sorted.
inline double smaller(const std::vector<double>& a, const std::vector<double>& b, const std::vector<double>& chance_a,
                      const std::vector<double>& chance_b) {
  double sum = 0, below = 0;  // probability that the value of b is smaller than a[i]
  std::size_t j = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (; j < b.size() && b[j] < a[i]; ++j) below += chance_b[j];
    double same = 0;
    for (std::size_t k = j; k < b.size() && b[k] == a[i]; ++k) same += chance_b[k];
    sum += chance_a[i] * (1 - below - same / 2);
  }
  return std::clamp(sum, 0.0, 1.0);
}

inline double expected(const std::vector<double>& sorted, const std::vector<double>& chances) {
  double sum = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i)
    if (chances[i] > 0) sum += chances[i] * sorted[i];
  return sum;
}

/// A sorted sample of the same size, drawn with replacement.
inline std::vector<double> resample(const std::vector<double>& sorted, Rng& random, std::vector<unsigned>& counts) {
  counts.assign(sorted.size(), 0);
  const auto size = static_cast<double>(sorted.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) ++counts[static_cast<std::size_t>(uniform01(random) * size)];
  std::vector<double> out;
  out.reserve(sorted.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) out.insert(out.end(), counts[i], sorted[i]);
  return out;
}

/// The middle `confidence` of the distribution of `value(a, b)` over resampled a and b.
template <class Value>
Interval bootstrap(const std::vector<double>& a, const std::vector<double>& b, const RankTestOptions& options,
                   const Value& value) {
  const double size = static_cast<double>(a.size() + b.size());
  const auto times = static_cast<std::size_t>(std::clamp(max_work / size, 200.0, 2000.0));
  Rng random = derived_rng(options.seed, {a.size(), b.size()});
  std::vector<unsigned> counts;
  std::vector<double> values;
  for (std::size_t i = 0; i < times; ++i) {
    const std::vector<double> x = resample(a, random, counts), y = resample(b, random, counts);
    values.push_back(value(x, y));
  }
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(std::lround(share * static_cast<double>(times - 1)))];
  };
  return {at((1 - options.confidence) / 2), at((1 + options.confidence) / 2)};
}

inline double sorted_median(const std::vector<double>& sorted) {
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : sorted[half - 1] / 2 + sorted[half] / 2;
}

}  // namespace detail::ranks

RankTest rank_test(std::span<const double> a, std::span<const double> b, const RankTestOptions& options) {
  namespace ranks = detail::ranks;
  RankTest out;
  if (a.empty() || b.empty()) {
    out.method = "none: a sample is empty";
    return out;
  }
  const auto n = static_cast<double>(a.size()), m = static_cast<double>(b.size());
  const auto pool = ranks::pooled(ranks::sorted(a), ranks::sorted(b));
  const auto seen = ranks::statistic(pool.first, pool.borders, n, m);
  out.effect = seen.effect;
  out.least_p = std::min(1.0, 2 * std::exp(-ranks::log_choose(n + m, n)));
  if (a.size() < 2 || b.size() < 2) {
    out.method = "none: a sample of one value does not tell how much it varies";
    return out;
  }
  if (std::min(a.size(), b.size()) >= ranks::enough_for_t && seen.variance > 0) {
    const boost::math::students_t_distribution<double> t(seen.freedom);
    out.method = "Brunner-Munzel test, t approximation";
    out.p = std::min(1.0, 2 * boost::math::cdf(boost::math::complement(t, std::fabs(seen.t()))));
    const double logit = std::log(seen.effect / (1 - seen.effect));
    const double width = boost::math::quantile(t, 0.5 + options.confidence / 2) * std::sqrt(seen.variance) /
                         (seen.effect * (1 - seen.effect));
    const auto share = [](double x) { return 1 / (1 + std::exp(-x)); };
    out.interval = Interval{share(logit - width), share(logit + width)};
    return out;
  }
  bool exact = false;
  out.p = ranks::permutation_p(pool, n, m, options.seed, exact);
  out.method = exact ? "Brunner-Munzel test, all permutations" : "Brunner-Munzel test, random permutations";
  out.interval = ranks::newcombe(seen.effect, n, m, options.confidence);
  return out;
}

BestOf best_of(std::span<const double> a, std::span<const double> b, std::size_t draws,
               const RankTestOptions& options) {
  namespace ranks = detail::ranks;
  if (draws == 0 || draws > std::min(a.size(), b.size()))
    fail(Errc::usage, "best_of: {} draws of samples of {} and {} values", draws, a.size(), b.size());
  const auto x = ranks::sorted(a), y = ranks::sorted(b);
  const auto chance_x = ranks::smallest_at(x.size(), draws), chance_y = ranks::smallest_at(y.size(), draws);
  BestOf out;
  out.draws = draws;
  out.probability = ranks::smaller(x, y, chance_x, chance_y);
  out.expected_a = ranks::expected(x, chance_x);
  out.expected_b = ranks::expected(y, chance_y);
  out.interval = ranks::bootstrap(
      x, y, options, [&](const auto& p, const auto& q) { return ranks::smaller(p, q, chance_x, chance_y); });
  return out;
}

double median(std::span<const double> values) { return detail::ranks::sorted_median(detail::ranks::sorted(values)); }

std::optional<Interval> median_difference(std::span<const double> a, std::span<const double> b,
                                          const RankTestOptions& options) {
  namespace ranks = detail::ranks;
  constexpr std::size_t enough = 5;
  const auto x = ranks::sorted(a), y = ranks::sorted(b);
  if (std::min(x.size(), y.size()) < enough) return std::nullopt;
  for (const double value : {x.front(), x.back(), y.front(), y.back()})
    if (!std::isfinite(value)) return std::nullopt;
  return ranks::bootstrap(
      x, y, options, [](const auto& p, const auto& q) { return ranks::sorted_median(p) - ranks::sorted_median(q); });
}

void holm(std::span<double> p) {
  const auto order = detail::sorted_order(p.size(), [&](std::size_t i, std::size_t j) { return p[i] < p[j]; });
  double least = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank)
    p[order[rank]] = least = std::max(least, std::min(1.0, p[order[rank]] * static_cast<double>(p.size() - rank)));
}

}  // namespace hypertune::inline v0
