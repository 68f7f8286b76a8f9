// Racing: definitions.
#pragma once

#include <hypertune/schedule/racing.hpp>

#include <algorithm>
#include <span>

namespace hypertune::inline v0 {

double Race::Runner::mean(std::size_t n) const {
  if (n == values.size()) return sum / static_cast<double>(n);
  double s = 0;
  for (std::size_t i = 0; i < n; ++i) s += values[i];
  return s / static_cast<double>(n);
}

Decision Race::on_report(const Progress& progress) {
  if (progress.steps < 1) return Decision::proceed;
  Runner& runner = state_.running[progress.trial];
  take(runner, static_cast<std::size_t>(progress.steps), progress.loss());
  const bool complete = instances > 0 && progress.steps >= instances;
  const bool worse = judge(progress.trial, runner);
  return complete ? Decision::complete : worse ? Decision::stop : Decision::proceed;
}

void Race::on_end(TrialId trial, TrialState state) {
  state_.running.erase(trial);
  if (trial != state_.best_trial || state != TrialState::failed) return;
  // A trial that failed is no longer the reference: the best running one takes its place.
  state_.best = {};
  state_.best_trial = -1;
  std::vector<TrialId> others;
  for (const auto& [other, runner] : state_.running) others.push_back(other);
  std::sort(others.begin(), others.end());
  for (const TrialId other : others)
    if (better(state_.running.at(other), state_.best)) lead(other, state_.running.at(other));
}

std::string Race::why(TrialId, const LossText& losses) const {
  std::string means = detail::format("after {} instances: mean {} of trial {}", state_.instances,
                                     losses.against(state_.mean, state_.least, "against"), state_.best_trial);
  if (state_.level == 0) return means;
  return means + detail::format(" (as likely by chance as {:.2g}, below {:.2g})", state_.chance, state_.level);
}

void Race::take(Runner& runner, std::size_t steps, double loss) const {
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

bool Race::better(const Runner& a, const Runner& b) {
  if (b.values.empty()) return !a.values.empty();
  const std::size_t n = std::min(a.values.size(), b.values.size());
  const double ours = a.mean(n), theirs = b.mean(n);
  return n == b.values.size() ? ours < theirs : false;
}

bool Race::judge(TrialId trial, Runner& runner) {
  Runner& best = state_.best;
  if (trial == state_.best_trial || better(runner, best)) {
    lead(trial, runner);
    return false;
  }
  const std::size_t n = std::min(runner.values.size(), best.values.size());
  const double mean = runner.mean(n), least = best.mean(n);
  state_.instances = n;
  state_.mean = mean;
  state_.least = least;
  state_.chance = state_.level = 0;
  if (!(mean < worst_loss)) return least < worst_loss;
  if (n < static_cast<std::size_t>(grace_period) || !(mean > least)) return false;
  const double k = static_cast<double>(runner.tests++);
  const double level = instances >= grace_period ? alpha / (instances - grace_period + 1) : alpha / ((k + 1) * (k + 2));
  state_.level = level;
  state_.chance = chance(trial, runner, n);
  return state_.chance < level;
}

double Race::chance(TrialId trial, const Runner& runner, std::size_t n) const {
  const Runner& best = state_.best;
  if (test == RaceTest::friedman) {
    std::vector<std::span<const double>> series{{runner.values.data(), n}, {best.values.data(), n}};
    for (const auto& [other, values] : state_.running)
      if (other != trial && other != state_.best_trial && values.values.size() >= n)
        series.emplace_back(values.values.data(), n);
    if (series.size() > 2) return detail::friedman_worse(series, 0);
  }
  std::vector<double> differences(n);
  for (std::size_t i = 0; i < n; ++i) differences[i] = runner.values[i] - best.values[i];
  return test == RaceTest::t ? detail::paired_t_test(differences) : detail::signed_rank_test(differences);
}

}  // namespace hypertune::inline v0
