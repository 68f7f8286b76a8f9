// Racing: definitions.
#pragma once

#include <hypertune/schedule/detail/friedman.hpp>
#include <hypertune/schedule/detail/paired_tests.hpp>
#include <hypertune/schedule/racing.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace hypertune::inline v0::detail {

/// One trial in the race.
struct Runner {
  std::vector<double> values{};  // by instance
  double sum = 0;
  std::int64_t tests = 0;
  double mean(std::size_t n) const;
};

struct RaceState {
  std::unordered_map<TrialId, Runner> running{};
  Runner best{};  // of the best trial, also after its end
  TrialId best_trial = -1;
  std::size_t instances = 0;  // of the last verdict: instances, both means, p-value and its threshold
  double mean = worst_loss, least = worst_loss, chance = 0, level = 0;
};

double Runner::mean(std::size_t n) const {
  if (n == values.size()) return sum / static_cast<double>(n);
  double s = 0;
  for (std::size_t i = 0; i < n; ++i) s += values[i];
  return s / static_cast<double>(n);
}

void take(Runner& runner, std::size_t steps, double loss, RaceReports reports) {
  const std::size_t before = runner.values.size();
  if (steps <= before) return;  // reported again after a restart
  double value = loss == loss ? loss : worst_loss;
  if (reports == RaceReports::running_mean && value < worst_loss)
    value = (value * static_cast<double>(steps) - runner.sum) / static_cast<double>(steps - before);
  if (value != value) value = worst_loss;  // the sum was already infinite
  runner.values.resize(steps, value);
  runner.sum += value * static_cast<double>(steps - before);
  if (runner.sum != runner.sum) runner.sum = worst_loss;
}

/// Whether a has done at least as many instances as b, and has the lower mean over those of b.
bool better(const Runner& a, const Runner& b) {
  if (b.values.empty()) return !a.values.empty();
  const std::size_t n = std::min(a.values.size(), b.values.size());
  const double ours = a.mean(n), theirs = b.mean(n);
  return n == b.values.size() ? ours < theirs : false;
}

void lead(RaceState& state, TrialId trial, const Runner& runner) {
  state.best = runner;
  state.best_trial = trial;
}

/// The p-value: the probability of such values if the trial were as good as the best.
double chance(const RaceState& state, RaceTest test, TrialId trial, const Runner& runner, std::size_t n) {
  const Runner& best = state.best;
  if (test == RaceTest::friedman) {
    std::vector<std::span<const double>> series{{runner.values.data(), n}, {best.values.data(), n}};
    for (const auto& [other, values] : state.running)
      if (other != trial && other != state.best_trial && values.values.size() >= n)
        series.emplace_back(values.values.data(), n);
    if (series.size() > 2) return friedman_worse(series, 0);
  }
  std::vector<double> differences(n);
  for (std::size_t i = 0; i < n; ++i) differences[i] = runner.values[i] - best.values[i];
  return test == RaceTest::t ? paired_t_test(differences) : signed_rank_test(differences);
}

/// Whether the trial is worse than the best one.
bool judge(RaceState& state, TrialId trial, Runner& runner, const Race& options) {
  Runner& best = state.best;
  if (trial == state.best_trial || better(runner, best)) {
    lead(state, trial, runner);
    return false;
  }
  const std::size_t n = std::min(runner.values.size(), best.values.size());
  const double mean = runner.mean(n), least = best.mean(n);
  state.instances = n;
  state.mean = mean;
  state.least = least;
  state.chance = state.level = 0;
  if (!(mean < worst_loss)) return least < worst_loss;
  if (n < static_cast<std::size_t>(options.grace_period) || !(mean > least)) return false;
  const double k = static_cast<double>(runner.tests++);
  const double level = options.instances >= options.grace_period
                           ? options.alpha / (options.instances - options.grace_period + 1)
                           : options.alpha / ((k + 1) * (k + 2));
  state.level = level;
  state.chance = chance(state, options.test, trial, runner, n);
  return state.chance < level;
}

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

Decision Race::on_report(const Progress& progress) {
  if (progress.steps < 1) return Decision::proceed;
  auto& state = state_.made();
  auto& runner = state.running[progress.trial];
  detail::take(runner, static_cast<std::size_t>(progress.steps), progress.loss(), reports);
  const bool complete = instances > 0 && progress.steps >= instances;
  const bool worse = detail::judge(state, progress.trial, runner, *this);
  return complete ? Decision::complete : worse ? Decision::stop : Decision::proceed;
}

void Race::on_end(TrialId trial, TrialState end) {
  auto& state = state_.made();
  state.running.erase(trial);
  if (trial != state.best_trial || end != TrialState::failed) return;
  // A trial that failed is no longer the reference: the best running one takes its place.
  state.best = {};
  state.best_trial = -1;
  std::vector<TrialId> others;
  for (const auto& [other, runner] : state.running) others.push_back(other);
  std::sort(others.begin(), others.end());
  for (const TrialId other : others)
    if (detail::better(state.running.at(other), state.best)) detail::lead(state, other, state.running.at(other));
}

std::string Race::why(TrialId, const LossText& losses) const {
  const auto& state = state_.or_default();
  std::string means = detail::format("after {} instances: mean {} of trial {}", state.instances,
                                     losses.against(state.mean, state.least, "against"), state.best_trial);
  if (state.level == 0) return means;
  return means + detail::format(" (as likely by chance as {:.2g}, below {:.2g})", state.chance, state.level);
}

}  // namespace hypertune::inline v0
