// Racing: a configuration is dropped once the evidence over instances says that it is worse than the best.
#pragma once

#include <hypertune/schedule/detail/friedman.hpp>
#include <hypertune/schedule/detail/paired_tests.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hypertune {

/// How Race compares a trial with the best one.
enum class RaceTest : std::uint8_t {
  t,         ///< the paired t-test: for values of one scale (folds of a cross-validation)
  wilcoxon,  ///< by ranks: for instances of very different difficulty, or with outliers
  friedman,  ///< by ranks among all that race (F-Race): as wilcoxon, but learns from the others, too
};

/// What the reports of a raced trial say.
enum class RaceReports : std::uint8_t {
  running_mean,  ///< the mean over all instances so far
  value,         ///< the value of this one instance
};

/// Racing over folds, problem instances or seeds (F-Race: Birattari et al., GECCO 2002; irace: López-Ibáñez et al.,
/// Operations Research Perspectives 3, 2016). Every step of a trial is one instance, and all trials go through the same
/// ones in the same order:
/// ```cpp
/// double sum = 0;
/// for (int i = context.next_step(); i < 30; ++i) {
///   sum += solve(instances[i], config);
///   co_yield ht::report("cost", sum / (i + 1));  // the mean so far: the trial's result is its last report
/// }
/// ```
/// After each instance from `grace_period` on, the trial is compared on the instances that both have had with the best
/// trial so far: the one that has had most instances, and among those the least mean. It stops when a paired one-sided
/// test rejects that it is as good. `alpha` is its risk, over all its tests together, to be dropped though it is as
/// good as that best one: a test with k others before it gets alpha / ((k + 1) (k + 2)), or, where `instances` is
/// known, an equal share (Bonferroni). With RaceTest::friedman all that have had as many instances are ranked on each
/// of them, those under way and the best; the trial stops when Friedman's test says that they differ and the comparison
/// after it that this trial is worse than the one of the best ranks. With two of them that is Wilcoxon's test. A trial
/// whose mean is infinite stops as soon as there is one with a finite mean.
///
/// Trials run in parallel and come at any time (asynchronous, unlike irace's iterations; the searcher plays the part of
/// its sampling). The reports may be the values themselves (`reports = RaceReports::value`), but then searchers and
/// results see the last instance's value instead of the mean. As a mean over few, easy instances may be the best report
/// of all, Results::best() may name a trial that was dropped: race_winner() (record/analysis.hpp) does not. A report
/// that skips steps stands for each of the instances it skips.
struct Race {
  static constexpr const char* type = "race";

  int instances = 0;
  int grace_period = 5;
  double alpha = 0.05;
  RaceTest test = RaceTest::t;
  RaceReports reports = RaceReports::running_mean;

  static void describe(auto& self, auto&& option) {
    option("instances", self.instances, at_least(0), "steps after which a trial is complete; 0: no limit");
    option("grace_period", self.grace_period, at_least(2), "instances before the first test");
    option("alpha", self.alpha, above(0).below(1), "risk of dropping a trial that is as good as the best");
    option("test", self.test, {"t", "wilcoxon", "friedman"}, "by values, by ranks of two, by ranks of all");
    option("reports", self.reports, {"running_mean", "value"}, "the mean so far, or the value of this instance");
  }

  struct Runner {
    std::vector<double> values{};  // by instance
    double sum = 0;
    std::int64_t tests = 0;
    double mean(std::size_t n) const {
      if (n == values.size()) return sum / static_cast<double>(n);
      double s = 0;
      for (std::size_t i = 0; i < n; ++i) s += values[i];
      return s / static_cast<double>(n);
    }
  };
  struct State {
    std::unordered_map<TrialId, Runner> running{};
    Runner best{};  // what the best trial has, also when it has ended
    TrialId best_trial = -1;
    std::size_t instances = 0;  // of the last verdict: on so many, means of so much, and how likely that is by chance
    double mean = worst_loss, least = worst_loss, chance = 0, level = 0;
  };
  State state_{};

  Decision on_report(const Progress& progress) {
    if (progress.steps < 1) return Decision::go_on;
    Runner& runner = state_.running[progress.trial];
    take(runner, static_cast<std::size_t>(progress.steps), progress.loss());
    const bool complete = instances > 0 && progress.steps >= instances;
    const bool worse = judge(progress.trial, runner);
    return complete ? Decision::complete : worse ? Decision::stop : Decision::go_on;
  }
  void on_end(TrialId trial, TrialState state) {
    state_.running.erase(trial);
    if (trial != state_.best_trial || state != TrialState::failed) return;
    // What failed in the end is no measure for others: the best of those under way takes its place.
    state_.best = {};
    state_.best_trial = -1;
    std::vector<TrialId> others;
    for (const auto& [other, runner] : state_.running) others.push_back(other);
    std::sort(others.begin(), others.end());
    for (const TrialId other : others)
      if (better(state_.running.at(other), state_.best)) lead(other, state_.running.at(other));
  }
  int max_steps() const { return instances; }
  std::string why(TrialId, const LossText& losses) const {
    const std::string means = detail::format("after {} instances: mean {} of trial {}", state_.instances,
                                             losses.against(state_.mean, state_.least, "against"), state_.best_trial);
    if (state_.level == 0) return means;
    return means + detail::format(" (as likely by chance as {:.2g}, below {:.2g})", state_.chance, state_.level);
  }

 private:
  void take(Runner& runner, std::size_t steps, double loss) const {
    const std::size_t before = runner.values.size();
    if (steps <= before) return;  // a repetition after a restart
    double value = loss == loss ? loss : worst_loss;
    if (reports == RaceReports::running_mean && value < worst_loss)
      value = (value * static_cast<double>(steps) - runner.sum) / static_cast<double>(steps - before);
    if (value != value) value = worst_loss;  // it was infinite before
    runner.values.resize(steps, value);
    runner.sum += value * static_cast<double>(steps - before);
    if (runner.sum != runner.sum) runner.sum = worst_loss;
  }
  // Over the instances that both have had, or with more of them at the same mean.
  static bool better(const Runner& a, const Runner& b) {
    if (b.values.empty()) return !a.values.empty();
    const std::size_t n = std::min(a.values.size(), b.values.size());
    const double ours = a.mean(n), theirs = b.mean(n);
    return n == b.values.size() ? ours < theirs : false;
  }
  void lead(TrialId trial, const Runner& runner) {
    state_.best = runner;
    state_.best_trial = trial;
  }

  bool judge(TrialId trial, Runner& runner) {
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
    const double level =
        instances >= grace_period ? alpha / (instances - grace_period + 1) : alpha / ((k + 1) * (k + 2));
    state_.level = level;
    state_.chance = chance(trial, runner, n);
    return state_.chance < level;
  }

  // Of values as these if the trial were as good as the best.
  double chance(TrialId trial, const Runner& runner, std::size_t n) const {
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
};

}  // namespace hypertune
