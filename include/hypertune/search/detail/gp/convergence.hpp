// Whether a search has stopped making progress, and why.
#pragma once

#include <hypertune/search/detail/gp/encoding.hpp>
#include <hypertune/search/detail/gp/history.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace hypertune::inline v0::detail::gp {

/// The root mean square of the differences of two points' features. Different labels count as 1, the largest distance.
inline double distance(const Encoding& encoding, const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k)
    sum += encoding.categorical()[k] == 0 ? (a[k] - b[k]) * (a[k] - b[k]) : a[k] == b[k] ? 0 : 1;
  return std::sqrt(sum / static_cast<double>(std::max<std::size_t>(1, a.size())));
}

/// The losses of the completed, feasible trials since `epoch`: their number, least value and (upper) median.
struct Spread {
  std::size_t count = 0;
  double least = worst_loss, middle = worst_loss;

  Spread(const History& history, std::size_t epoch) {
    std::vector<double> losses;
    for (std::size_t i = epoch; i < history.ended.size(); ++i)
      if (const double loss = history.ended[i].standing(); std::isfinite(loss)) losses.push_back(loss);
    count = losses.size();
    if (losses.empty()) return;
    const auto at = losses.begin() + static_cast<std::ptrdiff_t>(losses.size() / 2);
    std::nth_element(losses.begin(), at, losses.end());
    middle = *at;
    least = *std::min_element(losses.begin(), losses.end());
  }
};

/// Whether the last trials since `epoch` improved the best loss by at most the part `counts` of the spread of losses.
inline bool stagnant(const History& history, std::size_t epoch, const Encoding& encoding, double counts) {
  const std::size_t recent = std::max<std::size_t>(10, 2 * encoding.dimensions().size());
  if (history.ended.size() < epoch + 2 * recent) return false;
  const Spread spread(history, epoch);
  if (spread.count < 2 * recent) return false;
  double before = worst_loss;
  for (std::size_t i = epoch; i + recent < history.ended.size(); ++i)
    before = std::min(before, history.ended[i].standing());
  return before - spread.least <= counts * (spread.middle - spread.least);
}

/// Whether a stagnating search has found a minimum: other trials very close to the best are as good. If the model does
/// not fit the neighbourhood of the best (a bent valley, kinks, small basins), trials that are as good are elsewhere,
/// and those close to it are worse.
inline bool converged(const History& history, std::size_t epoch, const Encoding& encoding, std::size_t best) {
  constexpr double beside = 0.01, as_good = 1e-3;
  constexpr std::size_t min_found = 5;
  const Spread spread(history, epoch);
  const Record& center = history.ended[best];
  std::size_t found = 0;
  for (std::size_t i = epoch; i < history.ended.size(); ++i) {
    const Record& other = history.ended[i];
    if (i != best && other.standing() - spread.least <= as_good * (spread.middle - spread.least) &&
        distance(encoding, other.features, center.features) < beside)
      ++found;
  }
  return found >= min_found;
}

}  // namespace hypertune::inline v0::detail::gp
