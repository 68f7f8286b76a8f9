// Included by comparison.hpp.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/text.hpp>
#include <hypertune/error.hpp>
#include <hypertune/record/analysis.hpp>
#include <hypertune/record/comparison.hpp>
#include <hypertune/record/detail/best_so_far.hpp>
#include <hypertune/record/detail/journal_reader.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <variant>

namespace hypertune::inline v0 {

namespace detail {

inline constexpr double no_loss = std::numeric_limits<double>::infinity();

inline std::optional<double> value_of_loss(double loss, Mode mode) {
  if (!std::isfinite(loss)) return std::nullopt;
  return mode == Mode::maximize ? -loss : loss;
}

/// Follows the best result from record to record, knowing already which trials fail in the end.
class BestFollower {
 public:
  BestFollower(const Results& results, ComparedExperiment& out)
      : out_(&out), best_(out.objective, results.experiment().constraints) {
    for (const TrialResult& trial : results.trials()) failed_.push_back(trial.state == TrialState::failed);
  }

  void operator()(const Record& record) {
    if (std::holds_alternative<record::ExperimentStarted>(record.what)) {
      earlier_ = elapsed_;
      since_ = record.time;
    }
    elapsed_ = earlier_ + std::max(0.0, record.time - since_);
    if (const auto* report = std::get_if<record::TrialReported>(&record.what)) take(*report);
    out_->spent.elapsed = elapsed_;
  }

 private:
  void take(const record::TrialReported& report) {
    ++out_->spent.reports;
    const auto at = static_cast<std::size_t>(report.trial);
    if (at >= failed_.size() || failed_[at]) return;
    if (const auto value = best_.add(report.trial, report.metrics))
      out_->improvements_.push_back({{out_->spent.reports, elapsed_}, loss_of(*value, out_->objective.mode)});
  }

  ComparedExperiment* out_;
  BestSoFar best_;
  std::vector<bool> failed_;
  Seconds earlier_ = 0, since_ = 0, elapsed_ = 0;
};

/// Splits options such as "grace_period: 1, max_steps: 81".
inline void add_options(std::vector<std::pair<std::string, std::string>>& out, const char* of,
                        std::string_view options) {
  while (!options.empty()) {
    const std::string_view one = options.substr(0, options.find(", "));
    options.remove_prefix(std::min(one.size() + 2, options.size()));
    if (const auto colon = one.find(": "); colon != std::string_view::npos)
      out.emplace_back(of + std::string(one.substr(0, colon)), one.substr(colon + 2));
  }
}

inline std::vector<std::pair<std::string, std::string>> settings_of(const ExperimentInfo& info) {
  std::vector<std::pair<std::string, std::string>> out{{"search", info.searcher},
                                                       {"schedule", info.scheduler},
                                                       {"executor", info.executor},
                                                       {"samples", detail::format("{}", info.samples)},
                                                       {"seed", detail::format("{}", info.seed)}};
  std::string text;
  for (const Objective& objective : info.objectives)
    text += detail::format("{}{} {}", text.empty() ? "" : ", ", to_string(objective.mode), objective.metric);
  out.emplace_back("metric", text);
  text.clear();
  for (const MetricBound& bound : info.constraints)
    text += detail::format("{}{} {} {}", text.empty() ? "" : ", ", bound.metric,
                           bound.side == Mode::minimize ? "<=" : ">=", bound.value);
  if (!text.empty()) out.emplace_back("constraints", text);
  if (!info.command.empty()) out.emplace_back("trial.command", info.command);
  add_options(out, "search.", info.searcher_options);
  add_options(out, "schedule.", info.scheduler_options);
  std::string_view space = info.space;
  while (!space.empty()) {
    const std::string_view line = detail::take_until(space, '\n');
    if (const auto colon = line.find(": "); colon != std::string_view::npos)
      out.emplace_back("space." + std::string(line.substr(0, colon)), line.substr(colon + 2));
  }
  for (const auto& [name, value] : info.attributes) out.emplace_back("attribute." + name, to_string(value));
  return out;
}

inline void require_comparable(const std::vector<ComparedExperiment>& experiments) {
  if (experiments.size() < 2) fail(Errc::usage, "compare: name two experiments or more");
  for (const auto& each : experiments)
    if (each.objective != experiments.front().objective)
      fail(Errc::usage,
           "compare: '{}' is to {} '{}', but '{}' to {} '{}': name a metric of both with --metric and --mode",
           experiments.front().label, to_string(experiments.front().objective.mode),
           experiments.front().objective.metric, each.label, to_string(each.objective.mode), each.objective.metric);
}

/// The loss that represents an experiment among its repetitions.
inline double outcome(const ComparedExperiment& each, const Comparison& all) {
  std::optional<double> value = each.best;
  if (all.at == Budget::trials) value = each.best_of_trials(all.equal_trials);
  if (all.at == Budget::reports) value = each.best_at_reports(all.equal.reports);
  if (all.at == Budget::time) value = each.best_at_time(all.equal.elapsed);
  return value ? loss_of(*value, each.objective.mode) : no_loss;
}

inline bool without_result(const std::vector<double>& losses) {
  return std::none_of(losses.begin(), losses.end(), [](double loss) { return std::isfinite(loss); });
}

inline GroupComparison compare_samples(const std::vector<double>& a, const std::vector<double>& b, Mode mode,
                                       bool of_trials, const CompareOptions& options) {
  GroupComparison out;
  const RankTestOptions test{.confidence = options.confidence};
  out.count_a = a.size();
  out.count_b = b.size();
  out.of_trials = of_trials;
  const auto sign = mode == Mode::maximize ? -1.0 : 1.0;
  if (without_result(a) || without_result(b)) return out;
  out.median_a = value_of_loss(median(a), mode);
  out.median_b = value_of_loss(median(b), mode);
  out.median_difference = median_difference(a, b, test);
  if (out.median_difference && mode == Mode::maximize)
    out.median_difference = Interval{-out.median_difference->high, -out.median_difference->low};
  out.test = rank_test(a, b, test);
  constexpr std::size_t enough_for_draws = 20;
  if (of_trials && std::min(a.size(), b.size()) >= enough_for_draws) {
    out.best_of = best_of(a, b, std::min(a.size(), b.size()) / 4, test);
    out.best_of->expected_a *= sign;
    out.best_of->expected_b *= sign;
  }
  return out;
}

/// `without`: the names of the samples that have no result.
inline std::string nothing_to_compare(const GroupComparison& test, const std::vector<std::string>& without) {
  return detail::format("there is nothing to compare: no {} of {} has a result",
                        test.of_trials ? "trial" : "experiment",
                        without.size() > 1 ? "either" : "'" + without.front() + "'");
}

inline std::string verdict(const GroupComparison& test, double alpha) {
  const char* what = test.of_trials ? "trials" : "experiments";
  if (!test.p)
    return detail::format("too little data: {} and {} {}; nothing can be said about chance", test.count_a, test.count_b,
                          what);
  if (test.test->least_p > alpha)
    return detail::format(
        "too little data: with {} and {} {} no difference, however large, gives p below {:.2g}; repeat them (4 "
        "and 4 are the fewest that can)",
        test.count_a, test.count_b, what, test.test->least_p);
  if (*test.p > alpha)
    return detail::format("no difference was shown (p = {:.2g}); that is no proof that there is none", *test.p);
  return detail::format("{} {} better than {} by more than chance (p = {:.2g})",
                        test.test->effect > 0.5 ? test.a : test.b, test.of_trials ? "has trials that are" : "is",
                        test.test->effect > 0.5 ? test.b : test.a, *test.p);
}

inline void add_tests(Comparison& out, const CompareOptions& options) {
  std::vector<std::pair<std::string, std::vector<const ComparedExperiment*>>> groups;
  for (const auto& each : out.experiments) {
    const auto found =
        std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.first == each.group; });
    if (found == groups.end())
      groups.push_back({each.group, {&each}});
    else
      found->second.push_back(&each);
  }
  if (groups.size() < 2) {
    out.note = "all experiments are of one group: there is nothing to compare it with";
    return;
  }
  const bool of_trials =
      std::all_of(groups.begin(), groups.end(), [](const auto& group) { return group.second.size() == 1; });
  const auto sample = [&](const std::vector<const ComparedExperiment*>& members) {
    if (of_trials) return members.front()->losses;
    std::vector<double> losses;
    for (const auto* each : members) losses.push_back(outcome(*each, out));
    return losses;
  };
  const Mode mode = out.experiments.front().objective.mode;
  for (std::size_t i = 0; i < groups.size(); ++i)
    for (std::size_t j = i + 1; j < groups.size(); ++j) {
      const auto a = sample(groups[i].second), b = sample(groups[j].second);
      auto test = compare_samples(a, b, mode, of_trials, options);
      test.a = groups[i].first;
      test.b = groups[j].first;
      std::vector<std::string> without;
      if (without_result(a)) without.push_back(test.a);
      if (without_result(b)) without.push_back(test.b);
      if (!without.empty()) test.verdict = nothing_to_compare(test, without);
      out.tests.push_back(std::move(test));
    }
  std::vector<double> p;
  for (const auto& test : out.tests)
    if (test.test && test.test->p) p.push_back(*test.test->p);
  holm(p);
  bool any = false;
  for (std::size_t next = 0; auto& test : out.tests) {
    if (!test.test) continue;
    any = true;
    if (test.test->p) test.p = p[next++];
    test.verdict = verdict(test, 1 - options.confidence);
  }
  if (of_trials && any)
    out.note =
        "these are the trials of one run each: a searcher's trials depend on each other, a scheduler cuts some of them "
        "short, and all are of one seed. Whether one setting is better than another is told by repeated runs with "
        "other seeds: hypertune compare a=DIR a=DIR… b=DIR b=DIR…";
}

}  // namespace detail

std::optional<double> ComparedExperiment::best_of_trials(std::size_t count) const {
  double least = detail::no_loss;
  for (std::size_t i = 0; i < std::min(count, trial_losses_.size()); ++i) least = std::min(least, trial_losses_[i]);
  return detail::value_of_loss(least, objective.mode);
}
std::optional<double> ComparedExperiment::best_at_reports(std::int64_t reports) const {
  double least = detail::no_loss;
  for (const auto& improvement : improvements_)
    if (improvement.spent.reports <= reports) least = improvement.loss;
  return detail::value_of_loss(least, objective.mode);
}
std::optional<double> ComparedExperiment::best_at_time(Seconds elapsed) const {
  double least = detail::no_loss;
  for (const auto& improvement : improvements_)
    if (improvement.spent.elapsed <= elapsed) least = improvement.loss;
  return detail::value_of_loss(least, objective.mode);
}

ComparedExperiment compared_experiment(const std::filesystem::path& directory, const std::string& metric,
                                       std::optional<Mode> mode) {
  const Results results = Results::read(directory);
  ComparedExperiment out;
  out.directory = directory;
  out.info = results.experiment();
  out.objective = metric.empty() ? detail::first_objective(results) : Objective{metric, Mode::minimize};
  if (!metric.empty()) {
    const auto& objectives = out.info.objectives;
    const auto found = std::find_if(objectives.begin(), objectives.end(),
                                    [&](const Objective& objective) { return objective.metric == metric; });
    if (found == objectives.end() && !mode)
      fail(Errc::usage, "'{}' is no objective of the experiment in '{}': say by --mode whether min or max is better",
           metric, directory.string());
    out.objective.mode = mode ? *mode : found->mode;
    const auto& names = results.metrics();
    if (std::find(names.begin(), names.end(), metric) == names.end())
      fail(Errc::usage, "no trial of the experiment in '{}' reported a metric '{}'", directory.string(), metric);
  }
  out.label = out.group = out.info.name.empty() ? directory.string() : out.info.name;
  out.trials = results.size();
  out.failed = results.count(TrialState::failed);
  out.settings = detail::settings_of(out.info);
  out.trial_losses_.assign(results.size(), detail::no_loss);
  detail::judged_trials(results, out.objective, [&](const TrialResult& trial, double loss) {
    if (!out.info.admits(trial)) loss = detail::no_loss;
    out.losses.push_back(loss);
    if (trial.trial >= 0 && static_cast<std::size_t>(trial.trial) < out.trial_losses_.size())
      out.trial_losses_[static_cast<std::size_t>(trial.trial)] = loss;
  });
  JournalReader(directory).read(
      [follow = detail::BestFollower(results, out), until = out.info.records](const Record& record) mutable {
        if (record.sequence > until) return false;
        follow(record);
        return true;
      });
  if (const auto best = results.find_best(out.objective); best && best->best) {
    const double loss = detail::loss_of(best->best->value, out.objective.mode);
    if (out.info.admits(*best)) {
      out.best = best->best->value;
      out.best_trial = best->trial;
      if (out.improvements_.empty() || loss < out.improvements_.back().loss)
        out.improvements_.push_back({out.spent, loss});
    }
  }
  return out;
}

std::string setting(const ComparedExperiment& experiment, std::string_view name) {
  for (const auto& [key, value] : experiment.settings)
    if (key == name) return value;
  return "-";
}

Comparison compare(std::vector<ComparedExperiment> experiments, const CompareOptions& options) {
  detail::require_comparable(experiments);
  Comparison out;
  out.experiments = std::move(experiments);
  out.at = options.at;
  // An experiment in which all trials failed is ignored: the others cannot be compared at what it has spent.
  const bool none = std::none_of(out.experiments.begin(), out.experiments.end(),
                                 [](const auto& each) { return each.best.has_value(); });
  for (bool first = true; const auto& each : out.experiments) {
    if (each.best || none) {
      out.equal_trials = first ? each.trials : std::min(out.equal_trials, each.trials);
      out.equal.reports = first ? each.spent.reports : std::min(out.equal.reports, each.spent.reports);
      out.equal.elapsed = first ? each.spent.elapsed : std::min(out.equal.elapsed, each.spent.elapsed);
      first = false;
    }
    for (const auto& [name, value] : each.settings) {
      const bool differs = std::any_of(out.experiments.begin(), out.experiments.end(),
                                       [&](const auto& other) { return setting(other, name) != value; });
      if (differs && std::find(out.differing.begin(), out.differing.end(), name) == out.differing.end())
        out.differing.push_back(name);
    }
  }
  detail::add_tests(out, options);
  return out;
}

}  // namespace hypertune::inline v0

#include <hypertune/record/impl/comparison_text.hpp>
