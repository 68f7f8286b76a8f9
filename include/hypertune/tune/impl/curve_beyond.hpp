// CurveBeyond: definitions.
#pragma once

#include <hypertune/record/rank_test.hpp>
#include <hypertune/tune/curve_beyond.hpp>

#include <algorithm>
#include <cmath>

namespace hypertune::inline v0::detail {

CurveBeyond::CurveBeyond(const RecordedCurves& curves, int limit)
    : curves_(curves), within_unit_(curves.objectives().size(), true), ends_with_grid_(limit == 0) {
  for (const RecordedTrial& trial : curves.trials()) {
    for (std::size_t i = 0; i < trial.steps.size(); ++i)
      for (std::size_t k = 0; k < within_unit_.size(); ++k)
        if (const double value = curves.report(trial, i)[k]; std::isfinite(value))
          within_unit_[k] = within_unit_[k] && value >= 0 && value <= 1;
    ends_with_grid_ |= trial.end == RecordedTrial::End::by_itself && !trial.steps.empty() &&
                       trial.steps.back() == curves.grid().back();
  }
}

std::optional<int> CurveBeyond::next_step(const RecordedTrial& trial, int step) const {
  const auto& grid = curves_.grid();
  const auto next = std::upper_bound(grid.begin(), grid.end(), step);
  if (next != grid.end()) return *next;
  if (ends_with_grid_) return std::nullopt;
  const auto count = trial.steps.size();
  return step + (count > 1 ? trial.steps[count - 1] - trial.steps[count - 2] : 1);
}

const std::vector<CurveBeyond::Gain>& CurveBeyond::gains(std::size_t objective, int from, int to) {
  const auto [found, fresh] = gains_.try_emplace({{objective, from}, to});
  if (!fresh) return found->second;
  const double better = curves_.objectives()[objective].mode == Mode::minimize ? -1 : 1;
  for (const RecordedTrial& other : curves_.trials()) {
    const auto& steps = other.steps;
    if (steps.empty() || steps.back() < to) continue;
    const auto first = std::lower_bound(steps.begin(), steps.end(), from);
    const auto last = std::lower_bound(first, steps.end(), to);
    if (first == steps.end() || *first != from || last == steps.end() || *last != to) continue;
    const auto value = [&](auto at) {
      return curves_.report(other, static_cast<std::size_t>(at - steps.begin()))[objective];
    };
    const double begin = value(first), end = value(last);
    if (std::isfinite(begin) && std::isfinite(end)) found->second.push_back({begin, better * (end - begin)});
  }
  std::sort(found->second.begin(), found->second.end(),
            [](const Gain& a, const Gain& b) { return std::pair(a.from, a.gain) < std::pair(b.from, b.gain); });
  return found->second;
}

CurveBeyond::Guess CurveBeyond::at(const RecordedTrial& trial, int step, Beyond beyond) {
  const auto last = curves_.report(trial, trial.steps.size() - 1);
  Guess guess{{last.begin(), last.end()}, true};
  for (std::size_t k = 0; k < within_unit_.size(); ++k) {
    double& value = guess.values[k];
    if (!std::isfinite(value)) {
      guess.compared = false;
      continue;
    }
    const auto& all = gains(k, trial.steps.back(), step);
    if (all.size() < fewest) {
      guess.compared = false;
      continue;
    }
    if (beyond == Beyond::stands_still) continue;
    // The nearest ones are adjacent in the sorted list: drop elements at the end that is further away.
    const std::size_t count = std::max(fewest, all.size() / 4);
    std::size_t low = 0, high = all.size();
    while (high - low > count) {
      if (value - all[low].from > all[high - 1].from - value)
        ++low;
      else
        --high;
    }
    std::vector<double> near;
    for (std::size_t i = low; i < high; ++i) near.push_back(all[i].gain);
    const double gain = beyond == Beyond::best ? *std::max_element(near.begin(), near.end()) : median(near);
    value += curves_.objectives()[k].mode == Mode::minimize ? -gain : gain;
    if (within_unit_[k]) value = std::clamp(value, 0.0, 1.0);
  }
  return guess;
}

}  // namespace hypertune::inline v0::detail
