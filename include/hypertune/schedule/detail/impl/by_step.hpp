// One number per trial at each step, of all trials seen so far, for schedulers that compare step by step: definitions.
#pragma once

#include <hypertune/schedule/detail/by_step.hpp>

#include <algorithm>
#include <cmath>

namespace hypertune::inline v0::detail {

std::optional<double> ByStep::quantile(int step) const {
  const auto found = steps_.find(step);
  if (found == steps_.end()) return std::nullopt;
  const auto& all = found->second;
  if (all.quota() == 0) return all.next();
  if (all.quota() == all.size()) return all.boundary();
  const double place = fraction_ * static_cast<double>(all.size());
  if (place != static_cast<double>(all.quota())) return all.boundary();
  return all.next() == worst_loss ? worst_loss : all.boundary() / 2 + all.next() / 2;
}

Decision ByStep::judge(StepTrial& trial, int steps, const StepLimits& limits, double number, double fraction,
                       RungVerdict& verdict) {
  Decision decision = Decision::proceed;
  if (steps >= limits.grace_period) {
    const std::size_t others = trials(steps);
    if (others >= static_cast<std::size_t>(limits.min_trials) && trial.best > *quantile(steps)) {
      decision = Decision::stop;
      verdict = {.steps = steps, .loss = trial.best, .bar = *quantile(steps), .trials = others};
    }
    if (steps > trial.steps) add(std::max(trial.steps, limits.grace_period - 1), steps, number, fraction);
  }
  trial.steps = std::max(trial.steps, steps);
  return limits.max_steps > 0 && steps >= limits.max_steps ? Decision::complete : decision;
}

void ByStep::add(int previous, int step, double value, double fraction) {
  fraction_ = fraction;
  steps_.try_emplace(step);
  for (auto at = steps_.upper_bound(previous); at != steps_.end() && at->first <= step; ++at) {
    const double n = static_cast<double>(at->second.size() + 1);
    at->second.add(value, static_cast<std::size_t>(std::llround(fraction * n)));
  }
}

}  // namespace hypertune::inline v0::detail
