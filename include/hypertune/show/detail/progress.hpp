// ExperimentProgress: what the display shows of a running experiment, computed from its records.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/text_width.hpp>
#include <hypertune/detail/visit.hpp>
#include <hypertune/record/detail/feasibility.hpp>
#include <hypertune/record/detail/planned_trials.hpp>
#include <hypertune/record/detail/text_table.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/show/detail/sparkline.hpp>
#include <hypertune/trial/detail/state_counts.hpp>
#include <hypertune/trial/resources.hpp>
#include <hypertune/trial/trial.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

/// Facts that the records do not contain.
struct Capacity {
  double cpus = 0, gpus = 0;  ///< of all hosts together; 0: not shown
  /// How much of it is in use; nullopt: what the running trials have, according to the records.
  std::optional<double> cpus_used = {}, gpus_used = {};
  std::size_t held = 0;                    ///< trials that count as running but whose hosts are not there yet
  Resources per_trial;                     ///< resources of each trial, or of each of its workers
  int least_workers = 1, max_workers = 1;  ///< per trial
  Seconds time_limit = 0;                  ///< seconds from the start after which the experiment ends; 0: none
};

/// The state behind the display. A plain value, quick to copy: it contains running trials, but no waiting or ended
/// ones.
class ExperimentProgress {
 public:
  struct Running {
    int steps = 0;
    std::optional<double> metric;  ///< the first objective's last value
    double cpus = 0, gpus = 0;
    std::string params;                    ///< all parameters in one line
    std::shared_ptr<const Params> values;  ///< printable, with long texts cut; null: none were recorded
  };
  struct Best {
    TrialId trial = -1;
    int step = 0;
    double value = 0;
    std::string params;                    ///< as in Running
    std::shared_ptr<const Params> values;  ///< as in Running
    double violation = 0;                  ///< of the constraints on metrics; 0: it meets them
    std::vector<BestPoint> curve;          ///< earlier best values: a sample of bounded size
  };
  struct Rates {
    double trials_per_minute = 0, reports_per_second = 0;
  };

  const std::string& name() const { return name_; }
  const std::vector<Objective>& objectives() const { return started_.objectives; }
  std::int64_t planned() const { return planned_.count(); }  ///< number of trials that there are to be; 0: not known
  std::int64_t count(TrialState state) const { return counts_[state]; }
  std::int64_t ended() const { return counts_.ended(); }
  std::int64_t reports() const { return reports_; }
  const std::map<TrialId, Running>& running() const { return running_; }
  /// The best finite value of each objective so far, if there is one; if any trial meets the constraints, only of
  /// trials that do.
  const std::vector<std::optional<Best>>& best() const { return best_; }
  std::int64_t improvements() const { return improvements_; }
  std::int64_t failures() const { return failures_; }                ///< attempts that failed
  const std::string& last_failure() const { return last_failure_; }  ///< one line; empty: none yet
  const record::ExperimentStarted& started() const { return started_; }
  const std::optional<record::ExperimentEnded>& finished() const { return finished_; }
  const Capacity& capacity() const { return capacity_; }

  double elapsed() const { return now_ - start_; }
  /// Over the last 30 seconds.
  Rates rates() const;
  /// Seconds until all planned trials have ended, at the pace so far, or until the time limit; nullopt: not known.
  std::optional<double> time_left() const;
  double cpus_used() const { return capacity_.cpus_used ? *capacity_.cpus_used : used(&Running::cpus); }
  double gpus_used() const { return capacity_.gpus_used ? *capacity_.gpus_used : used(&Running::gpus); }

 private:
  friend class ProgressTracker;
  struct Sample {
    double time;
    std::int64_t ended, reports;
  };

  double used(double Running::* what) const {
    double sum = 0;
    for (const auto& [_, run] : running_) sum += run.*what;
    return sum;
  }

  Capacity capacity_;
  record::ExperimentStarted started_;
  detail::PlannedTrials planned_;
  std::optional<record::ExperimentEnded> finished_;
  std::string name_ = "experiment";
  detail::StateCounts counts_;
  std::map<TrialId, Running> running_;
  std::vector<std::optional<Best>> best_;
  std::int64_t reports_ = 0, live_reports_ = 0, live_ended_ = 0, improvements_ = 0, failures_ = 0;
  std::int64_t trained_ = 0, trained_steps_ = 0;  // trials that ended after at least one step, and their steps
  std::int64_t waiting_steps_ = 0;                // steps of the trials that wait to continue
  std::string last_failure_;
  double start_ = 0, now_ = 0;
  std::deque<Sample> samples_of_time_;
};

/// Computes ExperimentProgress from records and times that are passed in, without a clock or I/O. Memory: one byte per
/// trial, and the parameters of each trial until it has ended (at most 100 bytes per text).
class ProgressTracker {
 public:
  ProgressTracker() = default;
  explicit ProgressTracker(Capacity capacity) { p_.capacity_ = std::move(capacity); }

  /// Takes in a record. `live`: it happens now (false: it is replayed before a resumption and does not count for
  /// rates).
  void add(const Record& record, bool live = true);
  /// Sets the current time, in seconds of any steady clock, for the rates and the time left. The first call is the
  /// start.
  void tick(double now);
  void set_capacity(Capacity capacity) { p_.capacity_ = std::move(capacity); }
  const ExperimentProgress& progress() const { return p_; }

 private:
  void take(const record::ExperimentStarted& e);
  void take(const record::TrialCreated& e);
  void take(const record::TrialExploited& e);
  void describe(TrialId trial, const Params& params);
  void take(const record::TrialStarted& e);
  void take(const record::TrialResized& e);
  void take(const record::TrialReported& e);
  void take(const record::AttemptFailed& e);
  void set_state(TrialId trial, TrialState state);
  double violation_of(const record::TrialReported& e);

  ExperimentProgress p_;
  std::map<TrialId, std::vector<double>> excesses_;  // over the constraints, for trials that have not ended
  std::vector<TrialState> states_;
  struct Waiting {
    std::shared_ptr<const Params> values;
    int steps = 0;
  };
  std::map<TrialId, Waiting> waiting_;  // trials that neither run nor have ended
  bool ticked_ = false;
};

inline void ProgressTracker::set_state(TrialId trial, TrialState state) {
  if (trial < 0) return;
  const auto at = static_cast<std::size_t>(trial);
  while (states_.size() <= at) {
    states_.push_back(TrialState::pending);
    p_.counts_.add(TrialState::pending);
  }
  p_.counts_.move(states_[at], state);
  states_[at] = state;
  if (state == TrialState::running) return;
  if (const auto run = p_.running_.find(trial); run != p_.running_.end()) {
    waiting_[trial] = {.values = std::move(run->second.values), .steps = run->second.steps};
    p_.waiting_steps_ += run->second.steps;
    p_.running_.erase(run);
  }
  if (!is_final(state)) return;
  if (const auto ended = waiting_.extract(trial)) {
    p_.waiting_steps_ -= ended.mapped().steps;
    p_.trained_steps_ += ended.mapped().steps;
    p_.trained_ += ended.mapped().steps > 0;
  }
  excesses_.erase(trial);
}

inline void ProgressTracker::take(const record::ExperimentStarted& e) {
  // Trials that ran when an earlier driver died wait to continue.
  while (!p_.running_.empty()) set_state(p_.running_.begin()->first, TrialState::pending);
  if (p_.started_.objectives != e.objectives || p_.started_.constraints != e.constraints)
    p_.best_.assign(e.objectives.size(), std::nullopt);
  p_.started_ = e;
  p_.planned_.add(e);
  p_.name_ = detail::terminal::printable(e.name);
  p_.finished_.reset();
}

inline void ProgressTracker::take(const record::TrialCreated& e) {
  p_.planned_.add(e);
  set_state(e.trial, TrialState::pending);
  describe(e.trial, e.params);
}

inline void ProgressTracker::describe(TrialId trial, const Params& params) {
  auto values = std::make_shared<Params>();
  for (const auto& [name, value] : params) {
    const auto* const text = std::get_if<std::string>(&value);
    values->add(detail::terminal::printable(name),
                text == nullptr ? value : Value(detail::terminal::elide(detail::terminal::printable(*text), 100)));
  }
  waiting_[trial].values = std::move(values);
}

inline void ProgressTracker::take(const record::TrialExploited& e) { describe(e.trial, e.params); }

inline void ProgressTracker::take(const record::TrialStarted& e) {
  set_state(e.trial, TrialState::running);
  const auto waited = waiting_.extract(e.trial);
  if (waited) p_.waiting_steps_ -= waited.mapped().steps;
  const Resources& each = p_.capacity_.per_trial;
  auto& run = p_.running_[e.trial];
  run.steps = e.next_step;
  const auto workers = static_cast<double>(e.others.size() + 1);
  run.cpus = workers * (e.cpus.empty() ? each.cpus : static_cast<double>(e.cpus.size()));
  run.gpus = workers * (each.gpus > 0 ? each.gpus : static_cast<double>(e.gpus.size()));
  if (waited) run.values = waited.mapped().values;
  run.params.clear();
  if (run.values)
    for (const auto& [name, value] : *run.values)
      run.params += detail::format("{}{}={}", run.params.empty() ? "" : " ", name, detail::terminal::value_text(value));
}

inline void ProgressTracker::take(const record::TrialResized& e) {
  const auto run = p_.running_.find(e.trial);
  if (run == p_.running_.end() || e.workers.empty()) return;
  const auto workers = static_cast<double>(e.workers.size());
  const auto& [host, cpus, gpus] = e.workers.front();
  const Resources& each = p_.capacity_.per_trial;
  run->second.cpus = workers * (cpus.empty() ? each.cpus : static_cast<double>(cpus.size()));
  run->second.gpus = workers * (each.gpus > 0 ? each.gpus : static_cast<double>(gpus.size()));
}

// By how much the trial breaks the constraints; also updates the best values.
inline double ProgressTracker::violation_of(const record::TrialReported& e) {
  const auto& bounds = p_.started_.constraints;
  if (bounds.empty()) return 0;
  auto& excesses = excesses_[e.trial];
  const bool learnt = detail::update_excesses(excesses, bounds, e.metrics);
  const double violation = detail::violation(excesses, bounds);
  for (auto& best : p_.best_)
    if (learnt && best && best->trial == e.trial) best->violation = std::min(best->violation, violation);
  return violation;
}

inline void ProgressTracker::take(const record::TrialReported& e) {
  const double violation = violation_of(e);
  ++p_.reports_;
  const auto run = p_.running_.find(e.trial);
  if (run != p_.running_.end()) run->second.steps = e.step + 1;
  for (std::size_t i = 0; i < p_.best_.size(); ++i) {
    const Objective& objective = p_.started_.objectives[i];
    const double* const value = find_metric(e.metrics, objective.metric);
    if (value == nullptr) continue;
    if (i == 0 && run != p_.running_.end()) run->second.metric = *value;
    auto& best = p_.best_[i];
    const double sign = objective.mode == Mode::minimize ? 1 : -1;
    const bool better = std::isfinite(*value) && (!best || detail::ResultRank{violation, sign * *value} <
                                                               detail::ResultRank{best->violation, sign * best->value});
    if (!better) continue;
    if (!best || best->trial != e.trial) {
      std::vector<BestPoint> curve;
      if (best) curve = std::move(best->curve);
      best.emplace();
      best->curve = std::move(curve);
      best->trial = e.trial;
      if (run != p_.running_.end()) {
        best->params = run->second.params;
        best->values = run->second.values;
      }
    }
    best->step = e.step;
    best->value = *value;
    best->violation = violation;
    detail::terminal::add_best_point(best->curve, {p_.reports_, *value});
    ++p_.improvements_;
  }
}

inline void ProgressTracker::take(const record::AttemptFailed& e) {
  if (e.cause.source == FailureSource::preemption && e.retry)
    return set_state(e.trial, TrialState::pending);  // not counted as a failure
  if (!e.doubted) ++p_.failures_;
  p_.last_failure_ = detail::format("trial {}: {}{}", e.trial, detail::terminal::printable(e.cause.text),
                                    e.doubted ? " (it is tried again on another host)"
                                    : e.retry ? " (it is tried again)"
                                              : "");
  if (e.retry) set_state(e.trial, TrialState::pending);
}

inline void ProgressTracker::add(const Record& record, bool live) {
  const auto visitor = [&](const auto& e) {
    using E = std::decay_t<decltype(e)>;
    if constexpr (requires { this->take(e); }) {
      this->take(e);
      if (std::is_same_v<E, record::TrialReported> && live) ++p_.live_reports_;
    } else if constexpr (std::is_same_v<E, record::TrialPaused>) {
      set_state(e.trial, TrialState::paused);
    } else if constexpr (std::is_same_v<E, record::TrialEnded>) {
      set_state(e.trial, e.state);
      if (live) ++p_.live_ended_;
    } else if constexpr (std::is_same_v<E, record::ExperimentEnded>) {
      p_.finished_ = e;
    }
  };
  detail::visit(visitor, record.what);
}

inline void ProgressTracker::tick(double now) {
  if (!ticked_) p_.start_ = p_.now_ = now;
  ticked_ = true;
  p_.now_ = std::max(p_.now_, now);
  auto& samples = p_.samples_of_time_;
  if (samples.empty() || p_.now_ - samples.back().time >= 0.2)
    samples.push_back({p_.now_, p_.live_ended_, p_.live_reports_});
  while (samples.size() > 2 && p_.now_ - samples[1].time >= 30) samples.pop_front();
}

inline ExperimentProgress::Rates ExperimentProgress::rates() const {
  if (samples_of_time_.empty()) return {};
  const Sample& first = samples_of_time_.front();
  const double seconds = now_ - first.time;
  if (seconds <= 0) return {};
  return {.trials_per_minute = 60 * static_cast<double>(live_ended_ - first.ended) / seconds,
          .reports_per_second = static_cast<double>(live_reports_ - first.reports) / seconds};
}

inline std::optional<double> ExperimentProgress::time_left() const {
  std::optional<double> left;
  if (finished_) return left;
  if (planned() > 0 && live_ended_ > 0 && trained_ > 0 && live_reports_ > 0 && elapsed() > 0) {
    // Each trial is expected to take as many steps as those that have ended, and each step as long as so far. The steps
    // already done by running and waiting trials are subtracted: they matter if trials are long and there are few.
    const double each = static_cast<double>(trained_steps_) / static_cast<double>(trained_);
    double steps = each * static_cast<double>(std::max<std::int64_t>(0, planned() - ended()));
    steps -= static_cast<double>(waiting_steps_);
    for (const auto& [_, run] : running_) steps -= std::min(each, static_cast<double>(run.steps));
    left = elapsed() / static_cast<double>(live_reports_) * std::max(0.0, steps);
  }
  if (capacity_.time_limit > 0) {
    const double limit = std::max(0.0, capacity_.time_limit - elapsed());
    left = left ? std::min(*left, limit) : limit;
  }
  return left;
}

}  // namespace hypertune::inline v0
