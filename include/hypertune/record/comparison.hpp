// Comparison of experiments: what each found for what it spent, which settings differ, and whether the difference
// between the results is more than chance.
#pragma once

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

/// What an experiment had spent at some point.
struct Spent {
  std::int64_t reports = 0;  ///< steps reported, including repeated ones
  Seconds elapsed = 0;       ///< while the experiment ran: the time between two drivers does not count
};

/// One experiment in a comparison. Trials that failed or break a constraint on a metric are never the best.
struct ComparedExperiment {
  std::filesystem::path directory;
  std::string label;  ///< its name in the comparison
  std::string group;  ///< the same for all repetitions of one setup
  ExperimentInfo info;
  Objective objective;
  std::size_t trials = 0, failed = 0;
  Spent spent;
  std::optional<double> best;  ///< in the metric's own sign, like all values here except `losses`
  TrialId best_trial = -1;
  /// One per trial that has a result or failed. Smaller is better; infinite if it failed or breaks a constraint.
  std::vector<double> losses;
  /// Settings by name: search, schedule, executor, samples, seed, metric, constraints, trial.command,
  /// `search.<option>`, `schedule.<option>`, `space.<parameter>`, `attribute.<name>`.
  std::vector<std::pair<std::string, std::string>> settings;

  /// The best among the first `count` trials.
  std::optional<double> best_of_trials(std::size_t count) const;
  /// The best after that many reports, or after that much time.
  std::optional<double> best_at_reports(std::int64_t reports) const;
  std::optional<double> best_at_time(Seconds elapsed) const;

  struct Improvement {
    Spent spent;
    double loss;
  };
  std::vector<Improvement> improvements_;  // in chronological order
  std::vector<double> trial_losses_;       // by trial number; infinite for a trial that cannot be the best
};

/// Reads an experiment for a comparison by `metric` (empty: its first objective). `mode` may be omitted if the metric
/// is an objective. Errors: those of JournalReader; `usage` if no trial reported the metric, or if its mode is missing.
/// Memory: a few bytes per trial, none per report.
ComparedExperiment compared_experiment(const std::filesystem::path& directory, const std::string& metric = {},
                                       std::optional<Mode> mode = std::nullopt);

/// The point at which results are compared.
enum class Budget : std::uint8_t { end, trials, reports, time };

/// Two groups of repeated experiments, or two experiments by their trials.
struct GroupComparison {
  std::string a, b;  ///< names of groups, or labels of experiments
  std::size_t count_a = 0, count_b = 0;
  bool of_trials = false;                     ///< the values are those of one experiment's trials
  std::optional<double> median_a, median_b;   ///< none if half of them or more have no result
  std::optional<Interval> median_difference;  ///< of a - b
  std::optional<RankTest> test;   ///< none if a or b has no result; `effect`: probability that one of a is better
  std::optional<double> p;        ///< test->p after Holm's correction for the number of comparisons
  std::optional<BestOf> best_of;  ///< only for trials; `expected_…` in the metric's own sign
  std::string verdict;            ///< in words: what can be concluded, and what cannot
};

/// The result of compare().
struct Comparison {
  std::vector<ComparedExperiment> experiments;
  std::size_t equal_trials = 0;        ///< number of trials that all experiments with a result have
  Spent equal;                         ///< what all experiments with a result have spent
  std::vector<std::string> differing;  ///< names of the settings that are not the same in all
  Budget at = Budget::reports;
  std::vector<GroupComparison> tests;
  std::string note;  ///< why there is no test, or a caveat
};

struct CompareOptions {
  Budget at = Budget::reports;  ///< when the results of repeated experiments are compared
  double confidence = 0.95;     ///< of the intervals; p is compared with 1 - confidence
};

/// Compares experiments with the same objective. If a group has several experiments, each is represented by its best
/// result at `options.at`. Two experiments without repetitions are compared by their trials. This is weaker evidence,
/// because the trials of one search depend on each other and all have one seed. Error of kind `usage` if there are
/// fewer than two experiments, or if their metrics or directions differ.
Comparison compare(std::vector<ComparedExperiment> experiments, const CompareOptions& options = {});

/// The value of a setting in an experiment; "-" if it has none.
std::string setting(const ComparedExperiment& experiment, std::string_view name);

std::string comparison_table(const Comparison& comparison, std::size_t width = 0);
/// One object: `metric`, `mode`, `experiments`, `equal`, `settings` (those that differ), `tests`, `note`.
std::string comparison_json(const Comparison& comparison);

}  // namespace hypertune::inline v0
