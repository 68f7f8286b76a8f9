// ExperimentState: what an experiment's history adds up to. The live run and the replay after a restart are the same
// code.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/execute/growths.hpp>
#include <hypertune/record/feasibility.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/schedule/scheduler.hpp>
#include <hypertune/search/searcher.hpp>
#include <hypertune/space/search_space.hpp>
#include <hypertune/trial/checkpoint.hpp>
#include <hypertune/tune/stop.hpp>
#include <hypertune/tune/stop_judge.hpp>
#include <hypertune/tune/suggestions.hpp>
#include <hypertune/tune/trial_table.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// The losses of a report under `objectives`: what is maximised is negated; NaN and infinite values become the worst
/// loss. nullopt when a metric is missing.
inline std::optional<std::vector<double>> losses_of(const Metrics& metrics, std::span<const Objective> objectives) {
  std::vector<double> losses;
  losses.reserve(objectives.size());
  for (const auto& objective : objectives) {
    const double* value = find_metric(metrics, objective.metric);
    if (value == nullptr) return std::nullopt;
    losses.push_back(!std::isfinite(*value) ? worst_loss : objective.mode == Mode::minimize ? *value : -*value);
  }
  return losses;
}

/// The state of an experiment as a function of its records. apply() is called with each record once, in order, by the
/// Controller as it makes them and by the replay as it reads them; it is the only thing that changes trials, searcher
/// and scheduler. Single-threaded.
class ExperimentState {
 public:
  /// Attempts of a trial in a row that others have taken, after which the loss of one of its workers counts as its own
  /// failure: something about it may be the reason.
  static constexpr std::uint8_t most_taken = 3;

  ExperimentState(SearchSpace space, AnySearcher searcher, AnyScheduler scheduler, std::vector<Objective> objectives,
                  const StopCondition& stop, const SearchContext& goal, std::vector<MetricBound> constraints = {},
                  bool timed = false, Seconds startup = 0)
      : space_(std::move(space)),
        suggestions_(std::make_unique<Suggestions>(std::move(searcher))),
        scheduler_(std::move(scheduler)),
        exploits_(scheduler_.exploits()),
        timed_(timed),
        startup_(startup),
        objectives_(std::move(objectives)),
        constraints_(std::move(constraints)),
        trial_stop_(stop, objectives_),
        experiment_stop_(stop, objectives_) {
    suggestions_->prepare(space_, goal);
    scheduler_.prepare(space_, goal.seed);
    for (const auto& objective : objectives_) words_.add(objective.metric, objective.mode == Mode::maximize);
  }

  void apply(const record::Any& what, Seconds time);

  const SearchSpace& space() const { return space_; }
  const std::vector<Objective>& objectives() const { return objectives_; }
  const TrialTable& trials() const { return trials_; }
  Seconds now() const { return now_; }
  std::int64_t known() const { return known_; }
  std::int64_t total_steps() const { return total_steps_; }
  std::int64_t foreign() const { return foreign_; }
  /// Why the experiment is to end, once a stop condition says so.
  const std::optional<std::string>& ending() const { return ending_; }
  /// The experiment ends, for a reason that the records do not tell.
  void end(const std::string& why) {
    if (!ending_) ending_ = why;
  }
  /// Why the trial's last report ends it: the scheduler's words, or a stop condition's.
  std::string reason(TrialId trial) const {
    const auto found = reasons_.find(trial);
    return found == reasons_.end() ? record::by_scheduler : found->second;
  }
  /// Why the scheduler ends the trial, now that it has said so.
  std::string scheduler_reason(TrialId trial) const {
    const std::string why = scheduler_.why(trial, words_);
    return why.empty() ? record::by_scheduler : record::stopped_by + scheduler_.name() + " " + why;
  }
  /// The trial's sealed checkpoints, newest first.
  std::span<const CheckpointInfo> checkpoints(TrialId trial) const {
    const auto found = checkpoints_.find(trial);
    return found == checkpoints_.end() ? std::span<const CheckpointInfo>{} : found->second;
  }
  /// What the trial may go on from, the best choice first: its own checkpoints; where it has taken over another one's
  /// state, those it made since, then what it took over; before it has made any, at last its own of before.
  std::vector<CheckpointInfo> restorable(TrialId trial) const;
  /// Names of those of its checkpoints that the trial made before it took over another one's state.
  const std::set<std::string>* superseded(TrialId trial) const {
    const auto found = takeovers_.find(trial);
    return found == takeovers_.end() ? nullptr : &found->second.before;
  }
  bool exploited(TrialId trial) const { return takeovers_.contains(trial); }
  bool exploits() const { return exploits_; }
  /// Whether what the trial saved at a pause, its `last` or an earlier one, may still be taken over.
  bool may_give(TrialId trial, int steps, bool last) const { return scheduler_.may_give(trial, steps, last); }
  /// The first loss that the trial reported last within `steps` steps, by which a checkpoint of then is judged however
  /// late it arrives; the worst where it breaks a constraint.
  double loss_at(TrialId trial, int steps) const;
  /// The trial with the smallest first loss so far, and that loss; one that keeps the constraints, if any does.
  std::optional<TrialId> best() const { return best_; }
  double best_loss() const { return best_loss_; }
  int best_steps() const { return best_steps_; }  ///< steps done at that report

  // What the Controller asks on the way to new records; none of these changes a decision made later.
  /// nullopt: it is being computed elsewhere.
  std::optional<Suggestion> suggest(TrialId trial, std::uint64_t seed) { return suggestions_->suggest(trial, seed); }
  Suggestions& suggestions() { return *suggestions_; }
  const std::string& searcher() const { return suggestions_->name(); }
  std::string scheduler() const { return scheduler_.name(); }
  Choice choose_next(const Pool& pool) { return scheduler_.choose_next(pool); }
  /// Time-dependent stop conditions, asked between reports.
  std::optional<std::string> check_time(Seconds now) {
    if (experiment_stop_.empty()) return std::nullopt;
    now_ = std::max(now_, now);
    return experiment_stop_.check(view());
  }
  /// When check_time() is to be asked next though nothing happens.
  std::optional<Seconds> next_time_limit() const {
    const auto next = experiment_stop_.next_time(elapsed());
    return next ? std::optional(now_ + (*next - elapsed())) : std::nullopt;
  }
  /// Time that the experiment has run, without the time between sessions.
  Seconds elapsed() const { return elapsed_at(now_); }
  Seconds elapsed_at(Seconds now) const { return earlier_sessions_ + (std::max(now, now_) - session_start_); }
  void set_parked(TrialId trial, bool parked) { trials_[trial].parked = parked; }

  /// Whether the host that the trial was started on was lost since then. That it has come back changes nothing: what
  /// ran there is gone.
  bool on_lost_host(TrialId trial) const { return displaced_.contains(trial); }

  /// Where the workers of a trial were when it was started, or resized, last.
  struct Whereabouts {
    std::string host;                 // of rank 0
    std::vector<std::string> others;  // of ranks 1, 2, …
    std::uint32_t generation = 0;
    std::optional<Seconds> broken = {};  // since its last start or report: when workers were lost
    Growths joined = {};                 // since its start or a loss
    int growths = 0;                     // to more workers, since its last start or report
    std::vector<std::string> leaving =
        {};               // where workers are that it no longer has, until the newest generation trains
    bool trains = false;  // … which it does with the answer to the last report

    int workers() const { return static_cast<int>(others.size()) + 1; }
    const std::string& operator[](int rank) const {
      return rank == 0 ? host : others[static_cast<std::size_t>(rank) - 1];
    }
  };
  /// nullptr: it has not been started, or it has ended.
  const Whereabouts* where(TrialId trial) const {
    const auto found = where_.find(trial);
    return found == where_.end() ? nullptr : &found->second;
  }

  /// How many workers it is to have, as a person and the trial itself have said last; 0: any number.
  struct AskedWorkers {
    int by_user = 0, by_trial = 0;
  };
  AskedWorkers asked_workers(TrialId trial) const {
    const auto found = asked_workers_.find(trial);
    return found == asked_workers_.end() ? AskedWorkers{} : found->second;
  }

  /// What was noted of the trial, or (-1) of the experiment.
  const Attributes& attributes(TrialId trial) const {
    static const Attributes none;
    const auto found = attributes_.find(trial);
    return found == attributes_.end() ? none : found->second;
  }

  /// The trial whose report is the last record, so that nobody knows whether it was answered; -1: none.
  TrialId just_reported() const { return just_reported_; }

 private:
  void on(const record::ExperimentStarted&) {
    if (sessions_++ > 0) earlier_sessions_ += last_event_ - session_start_;
    session_start_ = now_;
    if (std::exchange(ended_in_order_, false)) ending_.reset();  // else a driver died on its way out: go on with that
  }

  void on(const record::TrialCreated& r);
  void on(const record::TrialStarted& r);
  void on(const record::TrialResized& r);
  static std::vector<int> ranks_on(const Whereabouts& where, const std::vector<std::string>& hosts);
  void on(const record::TrialReported& r);
  // What is known of the trial's constraints after a report. One that was not known until now holds for the reports
  // before as well: as a rule it is measured once.
  std::span<const double> learn_constraints(const record::TrialReported& r);
  void on(const record::AttributesSet& r) {
    auto& all = attributes_[r.trial];
    for (const auto& [name, value] : r.attributes) all.set(name, value);
  }
  void on(const record::WorkersAsked& r) {
    auto& asked = asked_workers_[r.trial];
    (r.by_user ? asked.by_user : asked.by_trial) = r.workers;
  }
  void on(const record::TrialCheckpointed& r);
  void on(const record::TrialExploited& r);
  void on(const record::CheckpointDropped& r);
  void on(const record::TrialPaused& r);
  void on(const record::AttemptFailed& r);
  void on(const record::TrialEnded& r);
  bool reopens(const record::TrialEnded& r);
  void on(const record::HostGained&) {}
  void on(const record::HostLost& r) {
    for (const auto& [trial, where] : where_)
      if (where.host == r.host || std::find(where.others.begin(), where.others.end(), r.host) != where.others.end())
        displaced_.insert(trial);
  }
  void on(const record::ExperimentEnded&) { ended_in_order_ = true; }

  bool fits(const Point& point, const Params& params) const {
    return point.size() == space_.size() && !params.empty() ? space_.params(point) == params
                                                            : point.size() == space_.size();
  }

  ExperimentProgressView view() const;
  void judge(const record::TrialReported& r);
  void judge(const record::TrialEnded& r);

  /// A trial that goes on from another one's checkpoint.
  struct Takeover {
    CheckpointInfo base;
    std::set<std::string> before = {};  // names of its own checkpoints of then
    bool saved = false;                 // it has made one of its own since
  };

  SearchSpace space_;
  std::unique_ptr<Suggestions> suggestions_;
  AnyScheduler scheduler_;
  bool exploits_;
  bool timed_;       // the searcher may go by durations
  Seconds startup_;  // of workers, where it is known beforehand
  std::vector<Objective> objectives_;
  std::vector<MetricBound> constraints_;
  TrialStop trial_stop_;
  ExperimentStop experiment_stop_;
  TrialTable trials_;
  std::map<TrialId, std::vector<CheckpointInfo>> checkpoints_;
  std::unordered_map<TrialId, Takeover> takeovers_;               // each one's last
  std::unordered_map<TrialId, std::vector<double>> last_losses_;  // of trials that have not ended
  std::unordered_map<TrialId, std::vector<double>> excesses_;     // … of the constraints
  static constexpr std::size_t max_recent = 32;                   // reports that a copy may come later than
  std::unordered_map<TrialId, std::vector<std::pair<int, double>>> recent_losses_;  // the first ones, by steps done
  std::unordered_map<TrialId, Attributes> attributes_;                              // -1: of the experiment
  std::set<TrialId> known_trials_;
  TrialId just_reported_ = -1, answering_ = -1;  // after, and before, the record that is being applied
  std::unordered_map<TrialId, AskedWorkers> asked_workers_;
  std::unordered_map<TrialId, Whereabouts> where_;  // of trials that have not ended
  std::set<TrialId> displaced_;                     // whose host was lost since they were started there
  std::optional<TrialId> best_;
  double best_loss_ = worst_loss, best_violation_ = worst_loss;
  int best_steps_ = 0;
  std::int64_t known_ = 0, total_steps_ = 0, foreign_ = 0;
  Seconds now_ = 0, last_event_ = 0, session_start_ = 0, earlier_sessions_ = 0;
  int sessions_ = 0;
  bool ended_in_order_ = false;
  std::optional<std::string> ending_;
  LossText words_;
  std::unordered_map<TrialId, std::string> reasons_;  // of trials whose last report ends them
};

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/tune/impl/experiment_state.hpp>
#endif
