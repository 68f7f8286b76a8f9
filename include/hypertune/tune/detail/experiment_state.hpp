// ExperimentState: the state that results from an experiment's records. The live run and the replay after a restart use
// the same code.
#pragma once

#include <hypertune/execute/detail/growths.hpp>
#include <hypertune/record/detail/feasibility.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/schedule/fifo.hpp>
#include <hypertune/schedule/scheduler.hpp>
#include <hypertune/search/searcher.hpp>
#include <hypertune/space/search_space.hpp>
#include <hypertune/trial/checkpoint.hpp>
#include <hypertune/tune/detail/stop_judge.hpp>
#include <hypertune/tune/detail/suggestions.hpp>
#include <hypertune/tune/detail/trial_table.hpp>
#include <hypertune/tune/stop.hpp>

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

/// The losses of a report under `objectives`: values to be maximised are negated; NaN and infinite values become the
/// worst loss. nullopt when a metric is missing.
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

/// The state of an experiment as a function of its records. apply() is called with each record once, in order: by the
/// Controller as it makes them, and by the replay as it reads them. Nothing else changes trials, searcher and
/// scheduler. Not thread-safe.
class ExperimentState {
 public:
  /// After this many preempted attempts of a trial in a row, the loss of one of its workers counts as the trial's own
  /// failure, because the trial may be the reason.
  static constexpr std::uint8_t max_taken = 3;

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
  /// The number of trials that do not fit the space, and why the first of them does not.
  std::int64_t foreign() const { return foreign_; }
  const std::string& why_foreign() const { return why_foreign_; }
  /// Why the experiment is to end, once a stop condition says so.
  const std::optional<std::string>& ending() const { return ending_; }
  /// Whether reports can end or pause a trial.
  bool judges_reports() const { return scheduler_.name() != Fifo::type || !trial_stop_.empty(); }
  /// Ends the experiment for a reason that is not in the records.
  void end(const std::string& why) {
    if (!ending_) ending_ = why;
  }
  /// Why the trial's last report ends it: the reason of the scheduler or of a stop condition.
  std::string reason(TrialId trial) const {
    const auto found = reasons_.find(trial);
    return found == reasons_.end() ? record::by_scheduler : found->second;
  }
  /// Why the scheduler ends the trial. To be called after it has decided that.
  std::string scheduler_reason(TrialId trial) const {
    const std::string why = scheduler_.why(trial, words_);
    return why.empty() ? record::by_scheduler : record::stopped_by + scheduler_.name() + " " + why;
  }
  /// The trial's sealed checkpoints, newest first.
  std::span<const CheckpointInfo> checkpoints(TrialId trial) const {
    const auto found = checkpoints_.find(trial);
    return found == checkpoints_.end() ? std::span<const CheckpointInfo>{} : found->second;
  }
  /// The checkpoints that the trial may be restored from, the best choice first: its own. If it has taken over another
  /// trial's state: first those that it made since, then the one that it took over, and, until it has made one since,
  /// its own of before.
  std::vector<CheckpointInfo> restorable(TrialId trial) const;
  /// Names of the checkpoints that the trial made before it took over another trial's state; nullptr if it has not.
  const std::set<std::string>* superseded(TrialId trial) const {
    const auto found = takeovers_.find(trial);
    return found == takeovers_.end() ? nullptr : &found->second.before;
  }
  bool exploited(TrialId trial) const { return takeovers_.contains(trial); }
  bool exploits() const { return exploits_; }
  /// Whether the checkpoint that the trial saved at a pause after `steps` steps may still be taken over. `last`: it was
  /// its last pause.
  bool may_give(TrialId trial, int steps, bool last) const { return scheduler_.may_give(trial, steps, last); }
  /// The loss of the first objective in the trial's last report within `steps` steps; worst_loss if the trial violates
  /// a constraint. It ranks checkpoints of that step, however late they arrive.
  double loss_at(TrialId trial, int steps) const;
  /// A bound on a metric of which the trial, which runs or is paused, has no value; nullptr if there is none.
  const MetricBound* bound_without_value(TrialId trial) const;
  /// The trial with the smallest loss of the first objective so far, among those that satisfy the constraints if any
  /// does.
  std::optional<TrialId> best() const { return best_; }
  double best_loss() const { return best_rank_.loss; }
  int best_steps() const { return best_steps_; }  ///< steps done at that report

  // Called by the Controller before it makes records. None of these calls changes a later decision.
  /// nullopt while it is computed on another thread.
  std::optional<Suggestion> suggest(TrialId trial, std::uint64_t seed) { return suggestions_->suggest(trial, seed); }
  Suggestions& suggestions() { return *suggestions_; }
  const std::string& searcher() const { return suggestions_->name(); }
  std::string scheduler() const { return scheduler_.name(); }
  Choice choose_next(const Pool& pool) { return scheduler_.choose_next(pool); }
  /// Checks the stop conditions on time between reports: why the experiment is to end, or nullopt.
  std::optional<std::string> check_time(Seconds now) {
    if (experiment_stop_.empty()) return std::nullopt;
    now_ = std::max(now_, now);
    return experiment_stop_.check(view());
  }
  /// When to call check_time() next even if no event comes.
  std::optional<Seconds> next_time_limit() const {
    const auto next = experiment_stop_.next_time(elapsed());
    return next ? std::optional(now_ + (*next - elapsed())) : std::nullopt;
  }
  /// Seconds that the experiment has run, without the time between sessions.
  Seconds elapsed() const { return elapsed_at(now_); }
  Seconds elapsed_at(Seconds now) const { return earlier_sessions_ + (std::max(now, now_) - session_start_); }
  void set_parked(TrialId trial, bool parked) { trials_[trial].parked = parked; }

  /// Whether a host of the trial was lost since the trial was started there. Also true if the host has come back since,
  /// because the processes there are gone.
  bool on_lost_host(TrialId trial) const { return displaced_.contains(trial); }

  /// Where the workers of a trial are, since its last start or resize.
  struct Whereabouts {
    std::string host;                 // of rank 0
    std::vector<std::string> others;  // of ranks 1, 2, …
    std::uint32_t generation = 0;
    std::optional<Seconds> broken = {};     // when workers were lost since its last start or report
    Growths joined = {};                    // workers that joined since its start or a loss
    int growths = 0;                        // increases of its workers since its last start or report
    std::vector<std::string> leaving = {};  // hosts of removed workers, until the newest generation trains
    bool trains = false;                    // it does, with the answer to the last report

    int workers() const { return static_cast<int>(others.size()) + 1; }
    const std::string& operator[](int rank) const {
      return rank == 0 ? host : others[static_cast<std::size_t>(rank) - 1];
    }
  };
  /// nullptr if the trial has not been started, or has ended.
  const Whereabouts* where(TrialId trial) const {
    const auto found = where_.find(trial);
    return found == where_.end() ? nullptr : &found->second;
  }

  /// The numbers of workers that the user and the trial itself have last asked for; 0: any number.
  struct AskedWorkers {
    int by_user = 0, by_trial = 0;
  };
  AskedWorkers asked_workers(TrialId trial) const {
    const auto found = asked_workers_.find(trial);
    return found == asked_workers_.end() ? AskedWorkers{} : found->second;
  }

  /// Attributes of the trial, or of the experiment (`trial` -1).
  const Attributes& attributes(TrialId trial) const {
    static const Attributes none;
    const auto found = attributes_.find(trial);
    return found == attributes_.end() ? none : found->second;
  }

  /// The trial whose report is the last record, so that it is unknown whether it was answered; -1: none.
  TrialId just_reported() const { return just_reported_; }

 private:
  void on(const record::ExperimentStarted&) {
    if (sessions_++ > 0) earlier_sessions_ += last_event_ - session_start_;
    session_start_ = now_;
    if (std::exchange(ended_in_order_, false)) ending_.reset();  // else: a driver died while ending it, go on with that
  }

  void on(const record::TrialCreated& r);
  void on(const record::TrialStarted& r);
  void on(const record::TrialResized& r);
  static std::vector<int> ranks_on(const Whereabouts& where, const std::vector<std::string>& hosts);
  void on(const record::TrialReported& r);
  // The trial's violations of its constraints after a report. A metric that is reported for the first time counts for
  // the earlier reports as well, because such a metric is usually measured only once.
  std::span<const double> learn_constraints(const record::TrialReported& r);
  void note_best(const record::TrialReported& r, detail::ResultRank rank);
  void on(const record::AttributesSet& r) {
    auto& all = attributes_[r.trial];
    for (const auto& [name, value] : r.attributes) all.set(name, value);
  }
  void on(const record::WorkersRequested& r) {
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

  /// The present space's point of a recorded configuration; nullopt if it has none, with the reason in why_foreign_.
  std::optional<Point> present_point(const Point& point, const Params& params);

  ExperimentProgressView view() const;
  void judge(const record::TrialReported& r);
  void judge(const record::TrialEnded& r);

  /// For a trial that goes on from another trial's checkpoint.
  struct Takeover {
    CheckpointInfo base;
    std::set<std::string> before = {};  // names of its own checkpoints at that time
    bool saved = false;                 // it has saved a checkpoint since
  };

  SearchSpace space_;
  std::unique_ptr<Suggestions> suggestions_;
  AnyScheduler scheduler_;
  bool exploits_;
  bool timed_;       // the searcher is told durations
  Seconds startup_;  // startup time of workers, if it is known beforehand
  std::vector<Objective> objectives_;
  std::vector<MetricBound> constraints_;
  TrialStop trial_stop_;
  ExperimentStop experiment_stop_;
  TrialTable trials_;
  std::map<TrialId, std::vector<CheckpointInfo>> checkpoints_;
  std::unordered_map<TrialId, Takeover> takeovers_;               // the last one of each trial
  std::unordered_map<TrialId, std::vector<double>> last_losses_;  // of trials that have not ended
  std::unordered_map<TrialId, std::vector<double>> excesses_;     // constraint violations of these trials
  static constexpr std::size_t max_recent = 32;                   // reports kept for checkpoints that arrive late
  std::unordered_map<TrialId, std::vector<std::pair<int, double>>> recent_losses_;  // first objective, by steps done
  std::unordered_map<TrialId, Attributes> attributes_;                              // trial -1: the experiment
  std::set<TrialId> known_trials_;
  TrialId just_reported_ = -1, answering_ = -1;  // after and before the record that is being applied
  std::unordered_map<TrialId, AskedWorkers> asked_workers_;
  std::unordered_map<TrialId, Whereabouts> where_;  // of trials that have not ended
  std::set<TrialId> displaced_;                     // trials with a host that was lost since they were started there
  std::optional<TrialId> best_;
  detail::ResultRank best_rank_;
  int best_steps_ = 0;
  std::int64_t known_ = 0, total_steps_ = 0, foreign_ = 0;
  std::string why_foreign_;
  Seconds now_ = 0, last_event_ = 0, session_start_ = 0, earlier_sessions_ = 0;
  int sessions_ = 0;
  bool ended_in_order_ = false;
  std::optional<std::string> ending_;
  LossText words_;
  std::unordered_map<TrialId, std::string> reasons_;  // of trials whose last report ends them
};

}  // namespace hypertune::inline v0
