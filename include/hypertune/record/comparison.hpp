// Experiments side by side: what each found for what it spent, what differs in their settings, and whether the
// difference is more than chance.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/record/rank_test.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/record/results.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// What an experiment had spent when something was so.
struct Spent {
  std::int64_t reports = 0;  ///< steps reported, repeated ones too
  Seconds elapsed = 0;       ///< of the experiment's own time, which stands still between drivers
};

/// One experiment in a comparison. Trials that failed or break a constraint on a metric are never the best.
struct ComparedExperiment {
  std::filesystem::path directory;
  std::string label;  ///< what it is called here
  std::string group;  ///< repetitions of one thing have the same
  ExperimentInfo info;
  Objective objective;
  std::size_t trials = 0, failed = 0;
  Spent spent;
  std::optional<double> best;  ///< in the metric's own sign, as all values here but `losses`
  TrialId best_trial = -1;
  /// Each trial that ended with a result or failed: smaller is better, a failure is infinite.
  std::vector<double> losses;
  /// Settings by name: search, schedule, executor, samples, seed, metric, constraints, trial.command,
  /// `search.<option>`, `schedule.<option>`, `space.<parameter>`, `attribute.<name>`.
  std::vector<std::pair<std::string, std::string>> settings;

  /// The best among the first so many trials.
  std::optional<double> best_of_trials(std::size_t count) const;
  /// The best when so many reports had come, or so much time had passed.
  std::optional<double> best_at_reports(std::int64_t reports) const;
  std::optional<double> best_at_time(Seconds elapsed) const;

  struct Improvement {
    Spent spent;
    double loss;
  };
  std::vector<Improvement> improvements_;  // in order
  std::vector<double> trial_losses_;       // by number: of those that may be best; else infinite
};

/// Reads an experiment for a comparison by `metric` (empty: its first objective); `mode` may be left out for an
/// objective. Errors as JournalReader's; `usage` where no trial reported it, or without a mode. Holds some bytes a
/// trial, nothing a report.
ComparedExperiment compared_experiment(const std::filesystem::path& directory, const std::string& metric = {},
                                       std::optional<Mode> mode = std::nullopt);

/// At which expense results are compared.
enum class Budget : std::uint8_t { end, trials, reports, time };

/// Two groups of repeated experiments, or two experiments by their trials.
struct GroupComparison {
  std::string a, b;  ///< which groups, or labels of experiments
  std::size_t count_a = 0, count_b = 0;
  bool of_trials = false;                     ///< the samples are trials of one experiment each, not experiments
  std::optional<double> median_a, median_b;   ///< none: half of them or more have no result
  std::optional<Interval> median_difference;  ///< of a - b
  std::optional<RankTest> test;   ///< none: one has no result at all. `effect`: how probably one of a is the better one
  std::optional<double> p;        ///< test->p after Holm's correction for the number of comparisons
  std::optional<BestOf> best_of;  ///< of trials: `expected_…` in the metric's own sign
  std::string verdict;            ///< in words: what can be said, and what cannot
};

/// What compare() found.
struct Comparison {
  std::vector<ComparedExperiment> experiments;
  std::size_t equal_trials = 0;        ///< that all experiments with a result have
  Spent equal;                         ///< that all experiments with a result have spent
  std::vector<std::string> differing;  ///< names of settings that are not the same in all
  Budget at = Budget::reports;
  std::vector<GroupComparison> tests;
  std::string note;  ///< why there is no test, or what is to be kept in mind
};

struct CompareOptions {
  Budget at = Budget::reports;  ///< where the results of repeated experiments are taken
  double confidence = 0.95;     ///< of intervals; 1 - this is what p is compared with
};

/// Compares experiments of the same objective. Where a group has several experiments, each counts with its best at
/// `options.at`; two experiments without repetitions are compared by their trials, which says less: trials of one
/// search depend on each other, and all on one seed. Error of kind `usage` where there are fewer than two, or they do
/// not agree in metric and direction.
Comparison compare(std::vector<ComparedExperiment> experiments, const CompareOptions& options = {});

/// The value of a setting in an experiment; "-" where it has none.
std::string setting(const ComparedExperiment& experiment, std::string_view name);

std::string comparison_table(const Comparison& comparison, std::size_t width = 0);
/// One object: `metric`, `mode`, `experiments`, `equal`, `settings` (those that differ), `tests`, `note`.
std::string comparison_json(const Comparison& comparison);

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/record/impl/comparison.hpp>
#endif
