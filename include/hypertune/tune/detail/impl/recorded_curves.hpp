// RecordedCurves: reads the curves of an experiment.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/record/detail/best_so_far.hpp>
#include <hypertune/record/detail/journal_reader.hpp>
#include <hypertune/record/rank_test.hpp>
#include <hypertune/tune/detail/recorded_curves.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>

namespace hypertune::inline v0 {

class RecordedCurves::Reader {
 public:
  explicit Reader(RecordedCurves& curves) : curves_(curves) {}

  void operator()(const Record& record) {
    // The time between two drivers does not count.
    const auto* start = std::get_if<record::ExperimentStarted>(&record.what);
    if (start != nullptr) offset_ = last_ - record.time;
    last_ = record.time + offset_;
    std::visit([this](const auto& event) { take(event); }, record.what);
  }

  void finish() {
    for (RecordedTrial& trial : curves_.trials_) fill(trial);
    std::erase_if(curves_.trials_, [](const RecordedTrial& trial) {
      return trial.steps.empty() && trial.end != RecordedTrial::End::failed;
    });
    std::sort(curves_.trials_.begin(), curves_.trials_.end(),
              [](const auto& a, const auto& b) { return a.trial < b.trial; });
    if (!medians_.empty()) curves_.usual_step_ = median(medians_);
    if (!startups_.empty()) curves_.startup_ = median(startups_);
    for (RecordedTrial& trial : curves_.trials_)
      for (std::size_t i = 0; i < trial.seconds.size(); ++i) settle(trial, i);
    curves_.grid_.assign(grid_.begin(), grid_.end());
    std::sort(curves_.grid_.begin(), curves_.grid_.end());
    curves_.elapsed_ = last_;
    find_improvements();
  }

 private:
  struct Under {
    std::size_t at = 0;  // in trials_
    Seconds since = 0;   // time of its attempt's start or of its last report
    bool starts = true;  // this attempt has not reported yet
    bool repeats = false;
    std::vector<bool> first = {};  // for each report: whether it was the first of an attempt
    std::vector<double> carried = {};
  };

  struct Told {
    Seconds at;
    std::int64_t steps;  // of all trials
    TrialId trial;
    std::size_t index;  // index of the report
  };

  // Computed at the end: only then it is known which trials have failed and can never be the best.
  void find_improvements() {
    detail::BestSoFar best(curves_.objectives().front(), curves_.constraints());
    for (const auto& [at, steps, id, index] : told_) {
      const auto trial = std::lower_bound(curves_.trials_.begin(), curves_.trials_.end(), id,
                                          [](const RecordedTrial& t, TrialId other) { return t.trial < other; });
      if (trial->end == RecordedTrial::End::failed) continue;
      if (const auto value = best.add(id, curves_.metrics(curves_.report(*trial, index))))
        curves_.improvements_.push_back({at, steps, id, *value});
    }
  }

  void take(const record::ExperimentStarted& event) {
    const auto objectives = curves_.start_.objectives;
    const auto constraints = curves_.start_.constraints;
    curves_.start_ = event;
    running_.clear();
    if (!std::exchange(begun_, true)) return;
    // Values are stored for the objectives and constraints of the first start.
    curves_.start_.objectives = objectives;
    curves_.start_.constraints = constraints;
  }
  void take(const record::TrialCreated& event) {
    if (event.known) return;
    under_[event.trial].at = curves_.trials_.size();
    curves_.trials_.emplace_back().trial = event.trial;
  }
  void take(const record::TrialStarted& event) {
    Under* under = find(event.trial);
    if (under == nullptr) return;
    const auto& steps = curves_.trials_[under->at].steps;
    under->since = last_;
    under->starts = true;
    under->repeats = !steps.empty() && event.next_step <= steps.back();
    running_.insert(event.trial);
    curves_.max_at_once_ = std::max(curves_.max_at_once_, static_cast<int>(running_.size()));
  }
  void take(const record::TrialReported& event) {
    Under* under = find(event.trial);
    if (under == nullptr) return;
    RecordedTrial& trial = curves_.trials_[under->at];
    if (!trial.steps.empty() && event.step <= trial.steps.back()) return;
    const Seconds took = last_ - std::exchange(under->since, last_);
    const bool first = std::exchange(under->starts, false);
    // The duration is unknown for repeated steps, and for steps that took no time (starts of simulated attempts).
    const bool known = took > 0 && !std::exchange(under->repeats, false);
    steps_ += event.step - (trial.steps.empty() ? -1 : trial.steps.back());
    trial.steps.push_back(event.step);
    trial.seconds.push_back(known ? took : std::numeric_limits<double>::quiet_NaN());
    under->first.push_back(first);
    grid_.insert(event.step);
    add_values(*under, trial, event.metrics);
    told_.push_back({last_, steps_, event.trial, trial.steps.size() - 1});
  }
  void take(const record::TrialPaused& event) { running_.erase(event.trial); }
  void take(const record::AttemptFailed& event) {
    running_.erase(event.trial);
    if (Under* under = find(event.trial); under != nullptr && record::is_tried_again(event))
      curves_.trials_[under->at].end = RecordedTrial::End::cut;
  }
  void take(const record::TrialEnded& event) {
    running_.erase(event.trial);
    Under* under = find(event.trial);
    if (under == nullptr) return;
    RecordedTrial& trial = curves_.trials_[under->at];
    if (event.state == TrialState::failed) {
      trial.end = RecordedTrial::End::failed;
      trial.cause = event.cause ? event.cause->text : "it failed";
    } else if (event.state == TrialState::completed && !event.at_limit) {
      trial.end = RecordedTrial::End::by_itself;
    } else {
      return;
    }
    trial.to_end = std::max(0.0, last_ - under->since);
  }
  void take(const record::TrialExploited& event) {
    fail(Errc::usage,
         "trial {} took over the state of trial {}: the trials of a population cannot be played again under another "
         "schedule, as nobody knows what each of them would have become alone",
         event.trial, event.donor);
  }
  void take(const auto&) {}

  Under* find(TrialId trial) {
    const auto found = under_.find(trial);
    return found == under_.end() ? nullptr : &found->second;
  }

  // A bounded metric that a report lacks keeps its last value.
  void add_values(Under& under, RecordedTrial& trial, const Metrics& metrics) const {
    const auto value = [&](const std::string& name) {
      const double* found = find_metric(metrics, name);
      return found == nullptr ? std::numeric_limits<double>::quiet_NaN() : *found;
    };
    for (const Objective& objective : curves_.objectives()) trial.values.push_back(value(objective.metric));
    under.carried.resize(curves_.constraints().size(), std::numeric_limits<double>::quiet_NaN());
    for (std::size_t i = 0; i < under.carried.size(); ++i) {
      const double now = value(curves_.constraints()[i].metric);
      if (!std::isnan(now)) under.carried[i] = now;
      trial.values.push_back(under.carried[i]);
    }
  }

  // The startup time of an attempt is estimated by how much longer its first report took than the others.
  void fill(const RecordedTrial& trial) {
    const auto& first = under_.at(trial.trial).first;
    std::vector<double> others;
    for (std::size_t i = 0; i < first.size(); ++i)
      if (!first[i] && !std::isnan(trial.seconds[i])) others.push_back(trial.seconds[i]);
    if (others.empty()) return;
    const double usual = median(others);
    medians_.push_back(usual);
    usual_[trial.trial] = usual;
    for (std::size_t i = 0; i < first.size(); ++i)
      if (first[i] && !std::isnan(trial.seconds[i])) startups_.push_back(std::max(0.0, trial.seconds[i] - usual));
  }
  void settle(RecordedTrial& trial, std::size_t i) const {
    double& seconds = trial.seconds[i];
    const auto own = usual_.find(trial.trial);
    const double usual = own == usual_.end() ? curves_.usual_step_ : own->second;
    if (std::isnan(seconds))
      seconds = usual;
    else if (under_.at(trial.trial).first[i])
      seconds = own == usual_.end() ? std::max(0.0, seconds - curves_.startup_) : usual;
  }

  RecordedCurves& curves_;
  std::unordered_map<TrialId, Under> under_;
  std::unordered_set<TrialId> running_;
  std::unordered_set<int> grid_;
  bool begun_ = false;
  std::vector<Told> told_;
  Seconds last_ = 0, offset_ = 0;
  std::int64_t steps_ = 0;
  std::vector<double> medians_, startups_;
  std::unordered_map<TrialId, double> usual_;
};

RecordedCurves RecordedCurves::read(const std::filesystem::path& directory) {
  RecordedCurves curves;
  Reader reader(curves);
  read_journal(directory, [&](const Record& record) { reader(record); });
  reader.finish();
  if (curves.grid_.empty())
    fail(Errc::usage, "no trial of '{}' has reported anything that could be played again", directory.string());
  return curves;
}

Metrics RecordedCurves::metrics(std::span<const double> values) const {
  Metrics metrics;
  std::size_t at = 0;
  for (const Objective& objective : objectives()) metrics.emplace_back(objective.metric, values[at++]);
  for (const MetricBound& bound : constraints()) {
    const double value = values[at++];
    if (!std::isnan(value) && find_metric(metrics, bound.metric) == nullptr) metrics.emplace_back(bound.metric, value);
  }
  return metrics;
}

Seconds RecordedCurves::busy() const {
  Seconds sum = 0;
  for (const auto& trial : trials_) {
    sum += trial.to_end;
    for (const Seconds seconds : trial.seconds) sum += seconds;
  }
  return sum;
}

std::int64_t RecordedCurves::steps() const {
  std::int64_t sum = 0;
  for (const auto& trial : trials_) sum += trial.steps.empty() ? 0 : trial.steps.back() + 1;
  return sum;
}

}  // namespace hypertune::inline v0
