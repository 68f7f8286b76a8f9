// ExperimentState: what an experiment's history adds up to. The live run and the replay after a restart are the same
// code.
#pragma once

#include <hypertune/detail/visit.hpp>
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
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
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

  void apply(const record::Any& what, Seconds time) {
    now_ = std::max(now_, time);
    answering_ = just_reported_;
    if (const auto* report = std::get_if<record::TrialReported>(&what))
      just_reported_ = report->trial;
    else if (!std::holds_alternative<record::TrialCheckpointed>(what) &&
             !std::holds_alternative<record::AttributesSet>(what) &&
             !std::holds_alternative<record::WorkersAsked>(what) &&
             !std::holds_alternative<record::ExperimentStarted>(what))
      just_reported_ = -1;
    detail::visit([this](const auto& r) { this->on(r); }, what);
    last_event_ = now_;
  }

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
  std::vector<CheckpointInfo> restorable(TrialId trial) const {
    const auto own = checkpoints(trial);
    // One that is ahead of the reports would leave out those between: earlier versions recorded such, and died.
    const auto reported = [steps = trials_[trial].steps](const CheckpointInfo& c) { return c.steps <= steps; };
    const auto found = takeovers_.find(trial);
    std::vector<CheckpointInfo> list, before;
    if (found == takeovers_.end()) {
      std::copy_if(own.begin(), own.end(), std::back_inserter(list), reported);
      return list;
    }
    const Takeover& takeover = found->second;
    for (const auto& checkpoint : own) {
      if (checkpoint == takeover.base) continue;
      const bool earlier = takeover.before.contains(checkpoint.name);
      if (earlier || reported(checkpoint)) (earlier ? before : list).push_back(checkpoint);
    }
    const auto donors = checkpoints(takeover.base.trial);
    if (std::find(donors.begin(), donors.end(), takeover.base) != donors.end()) list.push_back(takeover.base);
    if (!takeover.saved) list.insert(list.end(), before.begin(), before.end());
    return list;
  }
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
  double loss_at(TrialId trial, int steps) const {
    if (!constraints_.empty()) {
      const auto excesses = excesses_.find(trial);
      if (excesses == excesses_.end() || detail::violation(excesses->second, constraints_) > 0) return worst_loss;
    }
    const auto found = recent_losses_.find(trial);
    if (found == recent_losses_.end()) return worst_loss;
    const auto& recent = found->second;
    const auto later = std::upper_bound(recent.begin(), recent.end(), steps,
                                        [](int wanted, const auto& each) { return wanted < each.first; });
    return later == recent.begin() ? recent.front().second : std::prev(later)->second;
  }
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

  void on(const record::TrialCreated& r) {
    bool foreign = false;
    Point point = r.point;
    if (!fits(point, r.params)) {
      try {
        point = space_.point(r.params);
      } catch (const Error&) {
        foreign = true;
        point.assign(space_.size(), inactive);
      }
    }
    const TrialId trial = trials_.add(std::move(point));
    trials_[trial].foreign = foreign;
    foreign_ += foreign;
    known_ += r.known;
    if (foreign) return;
    suggestions_->observe({.kind = Observation::Kind::started, .trial = trial, .point = trials_[trial].point});
    if (!r.known)
      scheduler_.on_create(trial, trials_[trial].point);
    else
      known_trials_.insert(trial);
  }

  void on(const record::TrialStarted& r) {
    auto& entry = trials_[r.trial];
    if (entry.state == TrialState::paused && entry.before_pause == Decision::pause && !entry.foreign)
      scheduler_.on_resume(r.trial);
    auto& where = where_[r.trial];
    where = {.host = r.host, .others = {}, .generation = r.generation};
    for (const auto& other : r.others) where.others.push_back(other.host);
    displaced_.erase(r.trial);
    entry.attempts = r.attempt + 1;
    entry.since = now_;
    entry.started_at = r.next_step;
    entry.reported = false;
    entry.exploited = false;
    trials_.set_state(r.trial, TrialState::running);
  }

  void on(const record::TrialResized& r) {
    if (r.workers.empty()) return;
    auto& where = where_[r.trial];
    const int workers = static_cast<int>(r.workers.size());
    const Seconds last = where.broken.value_or(trials_[r.trial].since);
    where.growths += workers > where.workers() ? 1 : 0;
    const bool formed = where.broken ? *where.broken + startup_ <= now_ : where.joined.empty();
    if (formed || (where.trains && answering_ != r.trial)) where.leaving.clear();
    where.trains = false;
    const Growths::Stage before{.generation = where.generation, .workers = where.workers(), .last = last};
    const Growths::Stage next{.generation = r.generation, .workers = workers, .asked = now_, .formed = now_};
    if (!r.lost.empty()) {
      where.joined.lose(before, ranks_on(where, r.lost), next, startup_);
      if (where.joined.empty()) where.broken = now_;
    } else {
      for (int rank = workers; rank < where.workers(); ++rank) where.leaving.push_back(where[rank]);
      where.joined.resize(before, next);
    }
    where.host = r.workers.front().host;
    where.others.clear();
    where.generation = r.generation;
    for (std::size_t rank = 1; rank < r.workers.size(); ++rank) where.others.push_back(r.workers[rank].host);
    displaced_.erase(r.trial);
  }

  static std::vector<int> ranks_on(const Whereabouts& where, const std::vector<std::string>& hosts) {
    std::vector<int> ranks;
    for (int rank = 0; rank < where.workers(); ++rank)
      if (std::find(hosts.begin(), hosts.end(), where[rank]) != hosts.end()) ranks.push_back(rank);
    return ranks;
  }

  void on(const record::TrialReported& r) {
    auto& entry = trials_[r.trial];
    if (const auto where = where_.find(r.trial); where != where_.end()) {
      where->second.broken.reset();
      where->second.trains = where->second.joined.complete(now_, startup_);
      where->second.growths = 0;
    }
    const int done = r.step + 1;
    total_steps_ += std::max(0, done - entry.steps);
    if (done > entry.steps) entry.taken = 0;
    entry.steps = std::max(entry.steps, done);
    entry.elapsed += std::max(0.0, now_ - entry.since);
    entry.since = now_;
    entry.reported = true;
    entry.owed = Decision::proceed;
    entry.by_condition = false;
    reasons_.erase(r.trial);
    if (entry.foreign) return;
    const auto losses = losses_of(r.metrics, objectives_);
    const auto excesses = learn_constraints(r);
    if (losses) {
      entry.judged = true;
      const double violation = detail::violation(excesses, constraints_);
      if (!best_ || detail::better(violation, losses->front(), best_violation_, best_loss_)) {
        best_violation_ = violation;
        best_loss_ = losses->front();
        best_ = r.trial;
        best_steps_ = done;
      }
      last_losses_[r.trial] = *losses;
      auto& recent = recent_losses_[r.trial];
      while (!recent.empty() && recent.back().first >= done) recent.pop_back();  // of a past that it has left
      if (recent.size() == max_recent) recent.erase(recent.begin());
      recent.emplace_back(done, losses->front());
      suggestions_->observe({.kind = Observation::Kind::report,
                             .trial = r.trial,
                             .point = entry.point,
                             .steps = done,
                             .losses = *losses,
                             .constraints = excesses,
                             .state = TrialState::running,
                             .elapsed = timed_ ? entry.elapsed : 0});
      if (!known_trials_.contains(r.trial))
        entry.owed = scheduler_.on_report(
            {.trial = r.trial, .steps = done, .losses = *losses, .elapsed = entry.elapsed, .now = elapsed()});
      if (entry.owed == Decision::stop) reasons_[r.trial] = scheduler_reason(r.trial);
    }
    judge(r);
  }

  // What is known of the trial's constraints after a report. One that was not known until now holds for the reports
  // before as well: as a rule it is measured once.
  std::span<const double> learn_constraints(const record::TrialReported& r) {
    if (constraints_.empty()) return {};
    auto& excesses = excesses_[r.trial];
    if (!detail::update_excesses(excesses, constraints_, r.metrics)) return excesses;
    const double violation = detail::violation(excesses, constraints_);
    if (best_ == r.trial) best_violation_ = std::min(best_violation_, violation);
    const auto losses = last_losses_.find(r.trial);
    if (losses != last_losses_.end() &&
        detail::better(violation, losses->second.front(), best_violation_, best_loss_)) {
      best_violation_ = violation;
      best_loss_ = losses->second.front();
      best_ = r.trial;
      best_steps_ = r.step + 1;
    }
    return excesses;
  }

  void on(const record::AttributesSet& r) {
    auto& all = attributes_[r.trial];
    for (const auto& [name, value] : r.attributes) all.set(name, value);
  }
  void on(const record::WorkersAsked& r) {
    auto& asked = asked_workers_[r.trial];
    (r.by_user ? asked.by_user : asked.by_trial) = r.workers;
  }
  void on(const record::TrialCheckpointed& r) {
    auto& list = checkpoints_[r.trial];
    const auto later = [](const auto& a, const auto& b) { return a.steps > b.steps; };
    // Workers of several may have left within a step: of two after as many steps the newer one has more of the next
    // step then. Else the older one comes first: one that is found at a resumption may be of a past that was given up.
    const auto* place = where(r.trial);
    const bool several = place != nullptr && (place->workers() > 1 || place->generation > 0);
    list.insert(several && !takeovers_.contains(r.trial)
                    ? std::lower_bound(list.begin(), list.end(), r.checkpoint, later)
                    : std::upper_bound(list.begin(), list.end(), r.checkpoint, later),
                r.checkpoint);
    if (const auto takeover = takeovers_.find(r.trial); takeover != takeovers_.end()) takeover->second.saved = true;
  }
  void on(const record::TrialExploited& r) {
    auto& entry = trials_[r.trial];
    Takeover takeover{.base = r.checkpoint};
    for (const auto& checkpoint : checkpoints(r.trial)) takeover.before.insert(checkpoint.name);
    takeovers_.insert_or_assign(r.trial, std::move(takeover));
    if (fits(r.point, r.params)) {
      entry.point = r.point;
    } else {
      try {
        entry.point = space_.point(r.params);
      } catch (const Error&) {
        foreign_ += !entry.foreign;
        entry.foreign = true;
      }
    }
    entry.steps = r.checkpoint.steps;
    entry.owed = Decision::proceed;
    entry.exploited = true;
    entry.parked = false;
    if (!entry.foreign) scheduler_.on_exploit(r.trial, r.donor, entry.point, r.checkpoint.steps);
  }
  void on(const record::CheckpointDropped& r) {
    // Its name is free again, for one made since.
    if (const auto found = takeovers_.find(r.trial); found != takeovers_.end())
      found->second.before.erase(r.checkpoint.name);
    const auto found = checkpoints_.find(r.trial);
    if (found == checkpoints_.end()) return;
    std::erase_if(found->second, [&](const auto& c) { return c.name == r.checkpoint.name; });
    if (found->second.empty()) checkpoints_.erase(found);
  }

  void on(const record::TrialPaused& r) {
    auto& entry = trials_[r.trial];
    entry.before_pause = std::exchange(entry.owed, Decision::proceed);
    trials_.set_state(r.trial, TrialState::paused);
    if (!entry.foreign && entry.before_pause == Decision::pause) scheduler_.on_pause(r.trial);
  }
  void on(const record::AttemptFailed& r) {
    auto& entry = trials_[r.trial];
    if (!r.doubted && (r.cause.source == FailureSource::user ||
                       (r.cause.source == FailureSource::infrastructure && !on_lost_host(r.trial))))
      ++entry.failures;
    if (r.cause.source == FailureSource::preemption && entry.taken < most_taken) ++entry.taken;
    if (record::is_tried_again(r)) entry.failures = 0;
    if (r.retry) trials_.set_state(r.trial, TrialState::pending);
  }
  void on(const record::TrialEnded& r) {
    auto& entry = trials_[r.trial];
    // The schedule of then gave no more steps, or a stop condition of then ended it. In the eyes of the present ones,
    // to which the reports were replayed, the trial has not ended: it goes on when there is room, or waits to be
    // chosen.
    if (reopens(r) && !entry.foreign && (entry.owed == Decision::proceed || entry.owed == Decision::pause)) {
      trials_.set_state(r.trial, entry.owed == Decision::pause ? TrialState::paused : TrialState::pending);
      entry.before_pause = entry.owed;
      if (entry.owed == Decision::pause) scheduler_.on_pause(r.trial);
      entry.owed = Decision::proceed;
      return;
    }
    trials_.set_state(r.trial, r.state);
    if (!entry.foreign) {
      const auto losses = last_losses_.find(r.trial);
      const auto excesses = excesses_.find(r.trial);
      suggestions_->observe({.kind = Observation::Kind::ended,
                             .trial = r.trial,
                             .point = entry.point,
                             .steps = entry.steps,
                             .losses = losses == last_losses_.end() ? std::span<const double>{} : losses->second,
                             .constraints = excesses == excesses_.end() ? std::span<const double>{} : excesses->second,
                             .state = r.state,
                             .elapsed = timed_ ? entry.elapsed : 0});
      if (!known_trials_.contains(r.trial)) scheduler_.on_end(r.trial, r.state);
    }
    last_losses_.erase(r.trial);
    recent_losses_.erase(r.trial);
    reasons_.erase(r.trial);
    excesses_.erase(r.trial);
    where_.erase(r.trial);
    displaced_.erase(r.trial);
    judge(r);
  }
  bool reopens(const record::TrialEnded& r) {
    if (r.at_limit) return true;
    if (r.state != TrialState::stopped || !r.cause || !r.cause->retry || ending_) return false;
    if (auto why = check_time(now_)) ending_ = std::move(why);  // it was this that ended it, between reports
    return !ending_;
  }
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

  ExperimentProgressView view() const {
    ExperimentProgressView now;
    now.total_steps = total_steps_;
    now.completed = trials_.counts()[TrialState::completed];
    now.stopped = trials_.counts()[TrialState::stopped];
    now.failed = trials_.counts()[TrialState::failed];
    now.elapsed = elapsed();
    return now;
  }
  void judge(const record::TrialReported& r) {
    if (trial_stop_.empty() && experiment_stop_.empty()) return;
    auto& entry = trials_[r.trial];
    const TrialProgressView report{
        .trial = r.trial, .steps = r.step + 1, .metrics = r.metrics, .elapsed = entry.elapsed};
    if (auto why = trial_stop_.check(report); why && entry.owed != Decision::complete) {
      entry.owed = Decision::stop;
      entry.by_condition = true;
      reasons_[r.trial] = std::move(*why);
    }
    auto now = view();
    now.report = &report;
    if (auto why = experiment_stop_.check(now)) ending_ = std::move(why);
  }
  void judge(const record::TrialEnded& r) {
    trial_stop_.forget(r.trial);
    if (experiment_stop_.empty()) return;
    auto now = view();
    now.ended = r.trial;
    now.ended_state = r.state;
    if (auto why = experiment_stop_.check(now)) ending_ = std::move(why);
  }

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
