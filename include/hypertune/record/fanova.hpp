// How much of the variation of the results each parameter explains.
#pragma once

#include <hypertune/detail/stable_sort.hpp>
#include <hypertune/error.hpp>
#include <hypertune/random.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

struct FanovaOptions {
  std::uint64_t seed = 0;
  std::size_t trees = 32;
  std::size_t min_leaf = 2;        ///< the fewest results in a leaf
  std::size_t max_results = 4096;  ///< drawn per tree; limits time and memory if there are very many trials
};

namespace detail {

// A regression tree over the unit cube, stored as its leaves: boxes with a value.
class UnitTree {
 public:
  // `columns[d][i]`: coordinate d of result i.
  UnitTree(const std::vector<std::vector<double>>& columns, const std::vector<double>& y, std::size_t min_leaf)
      : columns_(columns),
        y_(y),
        min_leaf_(std::max<std::size_t>(min_leaf, 1)),
        order_(columns.size()),
        left_(y.size()) {
    for (std::size_t d = 0; d < columns.size(); ++d) {
      order_[d].resize(y.size());
      std::iota(order_[d].begin(), order_[d].end(), 0U);
      hypertune::detail::stable_sort(order_[d].begin(), order_[d].end(),
                                     [&](std::uint32_t a, std::uint32_t b) { return columns[d][a] < columns[d][b]; });
    }
    scratch_.resize(y.size());
    const std::size_t dimensions = columns.size();
    struct Node {
      std::size_t begin, end;
      std::vector<double> lower, upper;
    };
    std::vector<Node> open{{0, y.size(), std::vector<double>(dimensions, 0.0), std::vector<double>(dimensions, 1.0)}};
    while (!open.empty()) {
      Node node = std::move(open.back());
      open.pop_back();
      const Split split = best_split(node.begin, node.end);
      if (split.gain <= 0) {
        leaf(node.begin, node.end, node.lower, node.upper);
        continue;
      }
      const std::size_t middle = partition(node.begin, node.end, split);
      Node right{middle, node.end, node.lower, node.upper};
      right.lower[split.dimension] = split.at;
      node.end = middle;
      node.upper[split.dimension] = split.at;
      open.push_back(std::move(right));
      open.push_back(std::move(node));
    }
  }

  /// The variance over the cube. `of_dimension` gets the variance of each dimension's marginal.
  double variance(std::vector<double>& of_dimension) const {
    const std::size_t dimensions = columns_.size(), leaves = value_.size();
    double mean = 0, square = 0;
    std::vector<double> volume(leaves, 1.0);
    for (std::size_t l = 0; l < leaves; ++l) {
      for (std::size_t d = 0; d < dimensions; ++d) volume[l] *= width(l, d);
      mean += volume[l] * value_[l];
    }
    for (std::size_t l = 0; l < leaves; ++l) square += volume[l] * (value_[l] - mean) * (value_[l] - mean);
    std::vector<std::pair<double, double>> changes;  // position and size of each step of the marginal
    for (std::size_t d = 0; d < dimensions; ++d) {
      changes.clear();
      double level = 0;
      for (std::size_t l = 0; l < leaves; ++l) {
        const double part = volume[l] / width(l, d) * (value_[l] - mean);
        if (lower_[l * dimensions + d] > 0)
          changes.emplace_back(lower_[l * dimensions + d], part);
        else
          level += part;
        if (upper_[l * dimensions + d] < 1) changes.emplace_back(upper_[l * dimensions + d], -part);
      }
      std::sort(changes.begin(), changes.end());
      double own = 0, at = 0;
      for (const auto& [where, part] : changes) {
        own += (where - at) * level * level;
        at = where;
        level += part;
      }
      of_dimension[d] = own + (1 - at) * level * level;
    }
    return square;
  }

 private:
  struct Split {
    double gain = 0;
    std::size_t dimension = 0;
    double at = 0;
  };

  double width(std::size_t leaf, std::size_t d) const {
    return upper_[leaf * columns_.size() + d] - lower_[leaf * columns_.size() + d];
  }

  Split best_split(std::size_t begin, std::size_t end) const {
    Split best;
    const std::size_t n = end - begin;
    if (n < 2 * min_leaf_ || columns_.empty()) return best;
    double total = 0, squares = 0;
    for (std::size_t i = begin; i < end; ++i) total += y_[order_[0][i]];
    const double mean = total / static_cast<double>(n);
    for (std::size_t i = begin; i < end; ++i) squares += (y_[order_[0][i]] - mean) * (y_[order_[0][i]] - mean);
    const double least = 1e-12 * squares;  // smaller gains are rounding errors
    for (std::size_t d = 0; d < columns_.size(); ++d) {
      const auto& x = columns_[d];
      double left = 0;
      for (std::size_t i = begin; i + 1 < end; ++i) {
        left += y_[order_[d][i]] - mean;
        const std::size_t count = i + 1 - begin;
        if (count < min_leaf_ || n - count < min_leaf_) continue;
        const double here = x[order_[d][i]], next = x[order_[d][i + 1]], at = here + (next - here) / 2;
        if (!(here < at) || !(at <= next)) continue;
        const double gain = left * left * (1.0 / static_cast<double>(count) + 1.0 / static_cast<double>(n - count));
        if (gain > best.gain && gain > least) best = {gain, d, at};
      }
    }
    return best;
  }

  std::size_t partition(std::size_t begin, std::size_t end, const Split& split) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint32_t row = order_[0][i];
      left_[row] = columns_[split.dimension][row] < split.at;
    }
    std::size_t middle = begin;
    for (auto& order : order_) {  // stable, so that each dimension stays sorted
      std::size_t l = begin, r = 0;
      for (std::size_t i = begin; i < end; ++i)
        if (left_[order[i]])
          order[l++] = order[i];
        else
          scratch_[r++] = order[i];
      std::copy_n(scratch_.begin(), r, order.begin() + static_cast<std::ptrdiff_t>(l));
      middle = l;
    }
    return middle;
  }

  void leaf(std::size_t begin, std::size_t end, const std::vector<double>& lower, const std::vector<double>& upper) {
    double total = 0;
    for (std::size_t i = begin; i < end; ++i) total += y_[order_[0][i]];
    value_.push_back(total / static_cast<double>(end - begin));
    lower_.insert(lower_.end(), lower.begin(), lower.end());
    upper_.insert(upper_.end(), upper.begin(), upper.end());
  }

  const std::vector<std::vector<double>>& columns_;
  const std::vector<double>& y_;
  std::size_t min_leaf_;
  std::vector<std::vector<std::uint32_t>> order_;  // per dimension, sorted by it; a node is the same range in each
  std::vector<char> left_;
  std::vector<std::uint32_t> scratch_;
  std::vector<double> value_, lower_, upper_;
};

// NaN counts as the worst result. Extreme results are clamped: a parameter that turns a loss of 1 into 1e30 would
// otherwise explain all of the variance. The limits are far outside Tukey's fences for outliers.
inline std::vector<double> clamped_losses(std::span<const double> losses) {
  std::vector<double> sorted;
  for (const double loss : losses)
    if (std::isfinite(loss)) sorted.push_back(loss);
  if (sorted.empty()) return std::vector<double>(losses.size(), 0.0);
  std::sort(sorted.begin(), sorted.end());
  const double low = sorted[sorted.size() / 4], high = sorted[sorted.size() * 3 / 4];
  const double fence = high > low ? high + 10 * (high - low) : std::numeric_limits<double>::infinity();
  const double floor = high > low ? low - 10 * (high - low) : -std::numeric_limits<double>::infinity();
  const double worst = std::min(sorted.back(), fence), best = std::max(sorted.front(), floor);
  // scaled, so that squares neither overflow nor vanish
  const double scale = std::max({std::fabs(worst), std::fabs(best), std::numeric_limits<double>::min()});
  std::vector<double> y;
  for (const double loss : losses) {
    const double value = std::isnan(loss) ? worst : std::clamp(loss, best, worst);
    y.push_back(value / scale);
  }
  return y;
}

}  // namespace detail

/// Functional analysis of variance (Hutter, Hoos and Leyton-Brown, "An Efficient Approach for Assessing Hyperparameter
/// Importance", ICML 2014). A random forest is fitted to the results. The leaves of a tree are boxes, so that the
/// variance over the whole cube and the variance of each dimension's marginal are computed exactly. Returns the share
/// of the variance that each dimension explains by itself (0 … 1); the difference between their sum and 1 is due to
/// interactions. All shares are 0 if the results do not vary or there are fewer than 4.
///
/// `units`: one point per result. A coordinate is a quantile in [0, 1] (SearchSpace::to_unit()), or NaN if a
/// conditional parameter was not active. NaN is replaced by a random number: an inactive parameter has no influence by
/// definition, and the function is then defined on the whole cube. The parent keeps its own effect, and the share of a
/// conditional parameter is weighted by how often it is active. (PED-ANOVA was not chosen because it compares densities
/// among active values only.)
///
/// NaN and infinite losses count as the worst one. Deterministic for a seed. 1,000 results with 20 dimensions take a
/// fraction of a second.
inline std::vector<double> fanova(std::span<const std::vector<double>> units, std::span<const double> losses,
                                  const FanovaOptions& options = {}) {
  if (units.size() != losses.size())
    fail(Errc::usage, "importance needs a loss for each point, but there are {} points and {} losses", units.size(),
         losses.size());
  const std::size_t n = units.size(), dimensions = n == 0 ? 0 : units[0].size();
  for (const auto& unit : units)
    if (unit.size() != dimensions)
      fail(Errc::usage, "a point has {} coordinates and another one {}", dimensions, unit.size());
  std::vector<double> shares(dimensions, 0.0);
  if (n < 4 || options.trees == 0 || options.max_results == 0) return shares;
  const std::vector<double> y = detail::clamped_losses(losses);
  double trees = 0;
  for (std::size_t t = 0; t < options.trees; ++t) {
    Rng rng = derived_rng(options.seed, {0x66616e6f7661ULL, t});
    const std::size_t drawn = std::min(n, options.max_results);
    std::vector<std::vector<double>> columns(dimensions, std::vector<double>(drawn));
    std::vector<double> sample(drawn);
    for (std::size_t i = 0; i < drawn; ++i) {  // bootstrap
      const auto row = std::min(static_cast<std::size_t>(uniform01(rng) * static_cast<double>(n)), n - 1);
      sample[i] = y[row];
      for (std::size_t d = 0; d < dimensions; ++d) {
        const double x = units[row][d];
        columns[d][i] = std::isnan(x) ? uniform01(rng) : std::clamp(x, 0.0, 1.0);
      }
    }
    std::vector<double> own(dimensions);
    const double total = detail::UnitTree(columns, sample, options.min_leaf).variance(own);
    if (!(total > 0)) continue;
    trees += 1;
    for (std::size_t d = 0; d < dimensions; ++d) shares[d] += std::min(own[d] / total, 1.0);
  }
  for (double& share : shares) share = trees > 0 ? share / trees : 0;
  return shares;
}

}  // namespace hypertune::inline v0
