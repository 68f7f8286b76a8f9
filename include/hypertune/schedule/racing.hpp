// Racing: stops a configuration when the evidence over instances says that it is worse than the best one.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/detail/parts.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <cstdint>
#include <string>

namespace hypertune::inline v0 {

/// How Race compares a trial with the best one.
enum class RaceTest : std::uint8_t {
  t,         ///< the paired t-test: for values on a common scale (folds of a cross-validation)
  wilcoxon,  ///< by ranks: for instances of very different difficulty, or with outliers
  friedman,  ///< by ranks among all running trials (F-Race): like wilcoxon, but uses the other trials too
};

/// The meaning of a raced trial's reports.
enum class RaceReports : std::uint8_t {
  running_mean,  ///< the mean over all instances so far
  value,         ///< the value of this one instance
};

namespace detail {
struct RaceState;
}

/// Racing over folds, problem instances or seeds (F-Race: Birattari et al., GECCO 2002; irace: López-Ibáñez et al.,
/// Operations Research Perspectives 3, 2016). Every step of a trial is one instance, and all trials use the same
/// instances in the same order:
/// ```cpp
/// double sum = 0;
/// for (int i = context.next_step(); i < 30; ++i) {
///   sum += solve(instances[i], config);
///   co_yield ht::report("cost", sum / (i + 1));  // the mean so far: the trial's result is its last report
/// }
/// ```
/// After each instance from `grace_period` on, the trial is compared with the best trial so far on the instances that
/// both have done. The best trial is the one that has done most instances, and among those has the least mean. The
/// trial stops when a paired one-sided test rejects that it is as good. `alpha` is the total risk, over all tests of a
/// trial, that it is stopped although it is as good as the best one: a test with k tests before it gets
/// alpha / ((k + 1) (k + 2)), or an equal share if `instances` is known (Bonferroni). With RaceTest::friedman, all
/// running trials that have done as many instances, and the best one, are ranked on each instance. The trial stops when
/// Friedman's test says that they differ and the comparison after it says that this trial is worse than the one with
/// the best ranks. With only two trials Wilcoxon's test is used instead. A trial with an infinite mean stops as soon as
/// another one has a finite mean.
///
/// Trials run in parallel and start at any time (asynchronously, unlike irace's iterations; the searcher does the
/// sampling). The reports may be the values themselves (`reports = RaceReports::value`), but then searchers and results
/// see the last instance's value instead of the mean. As a mean over few, easy instances may be the best report of all,
/// Results::best() may name a trial that was stopped; race_winner() (record/analysis.hpp) does not. A report that skips
/// steps counts for each instance that it skips.
struct Race {
  static constexpr const char* type = "race";
  static constexpr const char& part = include_hypertune_src_schedulers_hpp_or_link_hypertune_hypertune;

  int instances = 0;     ///< steps after which a trial is complete; 0: no limit
  int grace_period = 5;  ///< 2 or more: instances before the first test
  double alpha = 0.05;   ///< above 0 and below 1: the risk of stopping a trial that is as good as the best
  RaceTest test = RaceTest::t;
  RaceReports reports = RaceReports::running_mean;

  static void describe(auto& self, auto&& option) {
    option("instances", self.instances, at_least(0), "steps after which a trial is complete; 0: no limit");
    option("grace_period", self.grace_period, at_least(2), "instances before the first test");
    option("alpha", self.alpha, above(0).below(1), "risk of dropping a trial that is as good as the best");
    option("test", self.test, {"t", "wilcoxon", "friedman"},
           "`t`: by values; `wilcoxon`: by pairwise ranks; `friedman`: by ranks of all");
    option("reports", self.reports, {"running_mean", "value"}, "the mean so far, or the value of this instance");
  }

  detail::Indirect<detail::RaceState> state_{};

  Decision on_report(const Progress& progress);
  void on_end(TrialId trial, TrialState state);
  int max_steps() const { return instances; }
  std::string why(TrialId, const LossText& losses) const;
};

}  // namespace hypertune::inline v0
