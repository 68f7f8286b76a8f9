// Whether results meet the bounds that the user sets on metrics (Options::constraints).
#pragma once

#include <hypertune/record/record.hpp>
#include <hypertune/trial/report.hpp>

#include <cmath>
#include <compare>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace hypertune::inline v0::detail {

inline constexpr double unknown_excess = std::numeric_limits<double>::quiet_NaN();

/// By how much `value` breaks the bound: positive if it does, NaN if not known.
inline double excess(const MetricBound& bound, double value) {
  if (std::isnan(value)) return unknown_excess;
  return bound.side == Mode::minimize ? value - bound.value : bound.value - value;
}

/// Updates what is known about the constraints of one trial by a report. A metric that the report lacks keeps its last
/// value. Returns whether the value of a bounded metric became known for the first time.
inline bool update_excesses(std::vector<double>& excesses, std::span<const MetricBound> bounds,
                            const Metrics& metrics) {
  bool learnt = false;
  excesses.resize(bounds.size(), unknown_excess);
  for (std::size_t i = 0; i < bounds.size(); ++i)
    if (const double* value = find_metric(metrics, bounds[i].metric)) {
      learnt = learnt || std::isnan(excesses[i]);
      excesses[i] = excess(bounds[i], *value);
    }
  return learnt;
}

/// One number for all constraints: 0 if all are met, infinite if one is not known, else the sum of the excesses, each
/// divided by the absolute value of its bound (unless that is 0).
inline double violation(std::span<const double> excesses, std::span<const MetricBound> bounds) {
  double sum = 0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    if (i >= excesses.size() || std::isnan(excesses[i])) return std::numeric_limits<double>::infinity();
    if (excesses[i] <= 0) continue;
    const double scale = bounds[i].value != 0 ? std::fabs(bounds[i].value) : 1.0;
    sum += std::fmin(excesses[i] / scale, 1e100);  // stays finite: infinite means not known
  }
  return sum;
}

/// What results are ranked by, less is better: the violation first, as in Deb (2000); the loss decides only if the
/// violations are equal.
struct ResultRank {
  double violation = std::numeric_limits<double>::infinity();
  double loss = std::numeric_limits<double>::infinity();
  auto operator<=>(const ResultRank&) const = default;
};

}  // namespace hypertune::inline v0::detail
