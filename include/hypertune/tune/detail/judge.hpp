// The Judge: decides about reports, ends and checkpoints of trials, and creates trials. It knows nothing of slots and
// queues.
#pragma once

#include <hypertune/checkpoint/detail/retention.hpp>
#include <hypertune/record/detail/host_faults.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/tune/detail/experiment_state.hpp>
#include <hypertune/tune/detail/requests/control_rules.hpp>
#include <hypertune/tune/detail/save_failures.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// Owns the state of an experiment. Every change of that state goes through commit(), or through replay() after a
/// restart.
class Judge {
 public:
  Judge(ExperimentState state, ControlRules rules)
      : state_(std::move(state)),
        rules_(std::move(rules)),
        retention_(rules_.checkpoint),
        first_(rules_.start_with.begin(), rules_.start_with.end()) {}

  ExperimentState& state() { return state_; }
  const ExperimentState& state() const { return state_; }
  const TrialTable& trials() const { return state_.trials(); }
  const ControlRules& rules() const { return rules_; }
  Seconds now() const { return now_; }
  void set_now(Seconds now) { now_ = now; }
  Attempt attempt(TrialId trial) const { return trials()[trial].attempts - 1; }

  /// Applies a record at once and adds it to `out`, from where it goes to the Journal.
  void commit(record::Any what, Outcome& out) {
    if (auto* const failed = std::get_if<record::AttemptFailed>(&what))
      failed->counts = !failed->doubted && counts(failed->trial, failed->cause);
    state_.apply(what, now_);
    track(what);
    out.records.push_back(std::move(what));
  }
  /// Applies one record of an earlier run.
  void replay(const Record& record) {
    state_.apply(record.what, record.time);
    track(record.what);
    remember(record.what);
  }

  // ---- Reports ----

  /// Records a report, unless its step is recorded already or `counts` is false (the report came too late). Its
  /// checkpoint is recorded in any case.
  void take(Reported& report, LiveTrial& run, int step, bool counts, Outcome& out);
  /// Why a trial that ended without a report of the objective counts as failed.
  std::string why_unjudged(const LiveTrial& run) const;
  std::optional<std::string> line(const SaveFailed& failure) { return save_failures_.line(failure, now_); }
  /// A line about lost checkpoints that the user has not been told about yet.
  std::optional<std::string> untold_save_failures() { return save_failures_.rest(); }

  // ---- Ends ----

  void end(TrialId trial, TrialState state, std::optional<Cause> cause, Outcome& out, bool at_limit = false);
  /// After a restart: carries out the answer to a trial's last report, if an earlier driver did not. Returns false, and
  /// does nothing, if there was nothing to carry out, or if the trial has to repeat that step first because its
  /// checkpoint at the end, or the one that it may give to others in its pause, is missing. (A trial that is restored from a checkpoint of that step would not report it
  /// again and would go on.)
  bool carry_out_owed(TrialId trial, Outcome& out);
  /// Whether a failure counts against the trial. A failure caused by the loss of a host does not.
  bool counts(TrialId trial, const Cause& cause) const {
    return cause.source == FailureSource::user ||
           (cause.source == FailureSource::infrastructure && !state_.on_lost_host(trial));
  }
  bool may_fail_again(TrialId trial) const { return trials()[trial].failures < rules_.failures.max; }

  // ---- Checkpoints ----

  void keep(const CheckpointInfo& checkpoint, Outcome& out);
  void drop(const CheckpointInfo& checkpoint, const std::string& why, Outcome& out);
  void drop_superfluous(Outcome& out);
  /// The checkpoints that the trial may be restored from, pinned until unpin_restorable().
  std::vector<CheckpointInfo> pin_restorable(TrialId trial);
  void unpin_restorable(LiveTrial& run);
  bool save_at_end() const { return rules_.checkpoint.every > 0 && rules_.checkpoint.at_end; }
  bool save_after(TrialId trial, int steps) const {
    const bool best_so_far = state_.best() == trial && state_.best_steps() == steps;
    return rules_.checkpoint.every > 0 && (rules_.checkpoint.due(steps) || best_so_far);
  }

  // ---- New trials ----

  bool more_trials() const {
    return !exhausted_ && (rules_.samples == 0 || trials().size() - state_.known() < rules_.samples);
  }
  bool exhausted() const { return exhausted_; }
  /// If the searcher came to its end before there were as many trials as were asked for: a line about that.
  std::string why_fewer() const;
  enum class Created : std::uint8_t { one, none, later };  // later: its configuration is being computed
  /// Creates one more trial: the last of trials().
  Created create(Outcome& out);
  /// Adds a trial that the user asked for. Raises the number of samples if there is none left.
  void add(Point point, Params params, Outcome& out);
  void about_to_choose() { searcher_waits_ = false; }  // until the searcher is asked
  /// A paused trial takes over a checkpoint of another trial, or an earlier one of its own.
  void exploit(const Choice& choice, Outcome& out);
  /// Throws an Error of kind `experiment` if trials are still to be created, but nothing runs and nothing ever will.
  void require_progress() const;
  Resources needs(const Point& point) const { return rules_.resources(state_.space().params(point)); }
  Resources needs(TrialId trial) const { return needs(trials()[trial].point); }
  std::uint64_t seed(TrialId trial) const { return derived_rng(rules_.seed, {static_cast<std::uint64_t>(trial), 2})(); }

  // ---- Lists of the options ----

  void make_room(Outcome& out);
  void add_known(std::span<const KnownResult> known, Outcome& out);
  /// Records how many workers a trial is to have, if that has changed.
  void ask_workers(TrialId trial, int workers, bool by_user, Outcome& out);
  /// Records attributes of a trial in any state, or of the experiment (`trial` -1). Returns a line for the user.
  std::string note(TrialId trial, const Attributes& attributes, Outcome& out);

  // ---- Hosts ----

  const HostFaults& faults() const { return faults_; }
  void forget_faults() { faults_.forget(); }
  /// Hosts that a failure with Cause::exclude_host has excluded.
  const std::set<std::string>& excluded() const { return excluded_; }
  bool exclude(const std::string& host) { return excluded_.insert(host).second; }
  void exclude_none() { excluded_.clear(); }

 private:
  void track(const record::Any& what);
  void remember(const record::Any& what);
  void leave_out_misnamed(TrialId trial, Metrics& metrics, Outcome& out);
  void note_units(TrialId trial, const Report& report, Outcome& out);
  void note_reported(TrialId trial, const Attributes& attributes, Outcome& out);
  static bool remember_names(LiveTrial& run, const Metrics& metrics);
  std::string nearest_reported(const LiveTrial& run) const;
  std::string reported_instead(const LiveTrial& run) const;
  void note_misnamed(TrialId trial, const LiveTrial& run, Outcome& out);
  void note_doubled(TrialId trial, const Metrics& metrics, Outcome& out);
  void note_unbounded(TrialId trial, Outcome& out);
  void note_unsaved(TrialId trial, Outcome& out);
  using Pins = std::unordered_map<TrialId, CheckpointInfo>;
  void release(Pins& pins, TrialId trial);
  void offer(TrialId trial);
  void review_offers();
  void on_own_checkpoint(TrialId trial);
  void require_sound(const Point& point, const std::string& who) const;

  ExperimentState state_;
  ControlRules rules_;
  Seconds now_ = 0;
  HostFaults faults_;
  std::set<std::string> excluded_;
  SaveFailures save_failures_;
  bool told_unnamed_ = false, told_misnamed_ = false, told_doubled_ = false, told_unbounded_ = false,
       told_unsaved_ = false;
  bool saved_ = false;          // some trial, since this driver began
  std::set<TrialId> overfull_;  // trials that have reported more attributes than are kept
  Retention retention_;
  // Checkpoints that trials took over. Each is pinned until its trial has saved a checkpoint of its own, so that it can
  // always be restored from something.
  Pins bases_;
  // Checkpoints that trials may take over: for each possible donor, what it had saved when it paused, the newest last.
  // Pinned as long as the scheduler may want it.
  struct Offer {
    CheckpointInfo checkpoint;
    int steps;         // of the pause
    bool last = true;  // whether it is of the donor's last pause
    bool pinned = false;
  };
  std::map<TrialId, std::vector<Offer>> offers_;
  std::set<TrialId> without_checkpoint_;  // trials that had no checkpoint at their last pause
  std::optional<TrialId> best_;           // the best trial that the retention was told of
  std::deque<Point> first_;               // configurations of start_with that have no trial yet
  struct RecordedKnown {
    TrialId trial;
    Metrics metrics = {};
    int steps = 0;  // 0: its report is missing
    bool listed = false;
  };
  std::vector<RecordedKnown> recorded_known_;
  bool exhausted_ = false, searcher_waits_ = false;  // the searcher's last answer
  bool told_nothing_to_take_over_ = false;
};

}  // namespace hypertune::inline v0
