// The Controller: the one owner of every trial's life. Events in; records and commands out; no I/O, no clock, no lock.
#pragma once

#include <hypertune/checkpoint/policy.hpp>
#include <hypertune/checkpoint/retention.hpp>
#include <hypertune/detail/linkage.hpp>
#include <hypertune/detail/visit.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/execute/placement.hpp>
#include <hypertune/record/host_faults.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/tune/control.hpp>
#include <hypertune/tune/experiment_state.hpp>
#include <hypertune/tune/policies.hpp>
#include <hypertune/tune/save_failures.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune {

/// What one call to the Controller brought about, in order: first the records are appended, then the commands go out.
struct Outcome {
  std::vector<record::Any> records;
  std::vector<Command> commands;
  std::vector<std::string> notices;  ///< lines for the user
  std::vector<TrialId> held;         ///< launched on hosts that are away: the commands follow when these are back
  void clear() {
    records.clear();
    commands.clear();
    held.clear();
    notices.clear();
  }
};

/// The rules by which a Controller runs an experiment.
struct ControlRules {
  std::int64_t samples = 0;  ///< trials to create beside the known ones; 0: until the searcher is exhausted
  std::uint64_t seed = 0;
  int concurrency = 0;                                     ///< trials that run at once; 0: as many as there is room for
  std::function<Resources(const Params&)> resources = {};  ///< what a trial needs
  bool uniform_resources = true;                           ///< resources() is the same for every configuration
  FailurePolicy failures = {};
  CheckpointPolicy checkpoint = {};
  std::vector<Point> start_with = {};  ///< points to try first
  bool manual = false;                 ///< trials start by ask() alone (ask/tell), never by themselves
  /// Decide as if no host were ever lost: what one had keeps its place, and trials without room elsewhere wait for it.
  bool ordered = false;
  Seconds host_patience = 600;  ///< … for so long at most
  bool metric_given = true;     ///< the objective was named, not left at its default
};

/// Decides what runs where and when. The order of calls is its only notion of time beside the `now` it is given. Calls
/// come one at a time (the Tuner's strand).
class Controller {
 public:
  Controller(ExperimentState state, ControlRules rules, Placement placement)
      : state_(std::move(state)),
        rules_(std::move(rules)),
        placement_(std::move(placement)),
        retention_(rules_.checkpoint),
        first_(rules_.start_with.begin(), rules_.start_with.end()) {}

  const ExperimentState& state() const { return state_; }
  const ControlRules& rules() const { return rules_; }
  /// Where they are deferred, fill() or ask() is to be called whenever work() has an answer.
  Suggestions& suggestions() { return state_.suggestions(); }

  // ---- Replay -----------------------------------------------------------------------------------------------------

  /// Takes over one record of an earlier run.
  void replay(const Record& record) {
    state_.apply(record.what, record.time);
    track(record.what);
    remember(record.what);
  }

  /// Before open_session(): where configurations that are to be tried first have no place among the samples, there are
  /// so many samples more.
  void make_room(Outcome& out);

  /// Before settle(): trials that have failed, by records that were replayed as if they had not.
  void try_again(std::span<const TrialId> trials, Seconds now, Outcome& out);

  /// After the last replayed record: settles what the earlier run left undone. Trials that ran go on from their last
  /// checkpoint, or (`survivors`: an executor whose workers outlive the driver) from where they were.
  void settle(Seconds now, bool survivors, Outcome& out);

  // ---- Live -------------------------------------------------------------------------------------------------------

  /// A sealed checkpoint that an earlier run left and did not record. Before settle().
  void found(const CheckpointInfo& checkpoint, Seconds now, Outcome& out) {
    now_ = now;
    keep(checkpoint, out);
  }

  /// Records that a driver takes up the experiment. Before everything else but the replay.
  void open_session(record::ExperimentStarted started, Seconds now, Outcome& out) {
    now_ = now;
    replaying_ = false;
    commit(std::move(started), out);
  }

  /// Records trials whose results the user knows, as far as they are not recorded yet. Error of kind `usage` if one
  /// lacks a metric that is tuned, or does not fit the space.
  void add_known(std::span<const KnownResult> known, Seconds now, Outcome& out);

  /// Starts what there is room for. Called once at the start; handle() does it by itself.
  void fill(Seconds now, Outcome& out);

  /// Takes one event of the executor.
  void handle(Event event, Seconds now, Outcome& out) {
    now_ = now;
    detail::visit([&](auto& e) { on(e, out); }, event);
    fill(now, out);
  }

  /// Time has passed: stop conditions on time, and hosts that are waited for.
  void tick(Seconds now, Outcome& out) {
    now_ = now;
    give_up_hosts(out);
    if (!ending_ && !interrupted_)
      if (auto why = state_.check_time(now)) end_experiment(*why, out);
    fill(now, out);
  }

  /// The user wants to leave: nothing new starts, each run is saved at its next report and then let go. The experiment
  /// can be resumed. finished() is true when all have left.
  void interrupt() { interrupted_ = true; }
  /// Second thoughts of the same user, or the end of the grace period: leave without waiting for the next report.
  void interrupt_now(Seconds now, Outcome& out);
  /// The end of all patience: what still runs counts as interrupted, whatever becomes of it. No event may come after.
  void abandon(Seconds now, Outcome& out);

  /// When tick() is to be called though nothing happens: a host has been waited for long enough then.
  std::optional<Seconds> next_give_up() const;
  /// Whether it holds a slot.
  bool holds_slot(TrialId trial) const { return live_.contains(trial); }

  bool interrupted() const { return interrupted_; }
  /// Nothing runs and nothing will.
  bool finished() const { return live_.empty() && done_; }
  /// Why the experiment ended, where it was not for having tried everything.
  const std::optional<std::string>& why_ended() const { return ending_; }
  std::size_t running() const { return live_.size(); }
  const Placement& placement() const { return placement_; }
  /// What the user has not been told yet of checkpoints that could not be kept; for the end.
  std::optional<std::string> untold_save_failures() { return save_failures_.rest(); }
  // ---- By a person, from elsewhere.

  /// Does what is asked for, of each trial by itself; to leave is the driver's own affair, and not for here.
  ControlAnswer carry_out(const ControlRequest& request, Seconds now, Outcome& out);

  // Each of these answers with a line for that person; Error of kind `usage`: it was not done. What there is room for
  // then is started by fill().

  /// Ends a trial for good.
  std::string stop_trial(TrialId trial, Seconds now, Outcome& out);
  /// Has a trial saved and its slot freed after its next report, until continue_trial(): it is paused, but to the
  /// scheduler it runs. The record of it ends with this driver: a resumption lets it go on.
  std::string pause_trial(TrialId trial);
  std::string continue_trial(TrialId trial);
  /// The same for all that run, and nothing starts.
  std::string pause_all();
  std::string continue_all();
  /// One more configuration to try, as soon as there is room. It counts as a sample; where there is none left, there is
  /// one more.
  std::string add(const Params& params, Seconds now, Outcome& out);
  /// Notes attributes of a trial, whatever its state, or (-1) of the experiment.
  std::string note(TrialId trial, const Attributes& attributes, Seconds now, Outcome& out);
  /// Nothing runs, as a person wants it so.
  bool rests() const { return live_.empty() && !done_ && (all_rest_ || !resting_.empty()); }

  /// One sentence why the trial does not run now; empty when it runs or has ended.
  std::string why_pending(TrialId trial) const;

  // ---- Ask/tell: a trial without an executor --------------------------------------------------------------------

  /// Creates the next trial and counts it as running; nullopt when there is none (now, or ever: exhausted()).
  std::optional<TrialId> ask(Seconds now, Outcome& out);
  bool exhausted() const { return exhausted_; }
  Attempt attempt(TrialId trial) const { return state_.trials()[trial].attempts - 1; }
  std::uint64_t trial_seed(TrialId trial) const {
    return derived_rng(rules_.seed, {static_cast<std::uint64_t>(trial), 2})();
  }

 private:
  using Phase = LiveTrial::Phase;

  // Everything that changes the experiment passes here: the record is applied at once and goes to the Journal.
  void commit(record::Any what, Outcome& out) {
    state_.apply(what, now_);
    track(what);
    out.records.push_back(std::move(what));
  }
  // What the Controller itself follows in the records, live and in the replay.
  void track(const record::Any& what);
  void follow_queue(const record::Any& what);
  void remember(const record::Any& what);

  LiveTrial* live(TrialId trial, Attempt attempt) {
    const auto found = live_.find(trial);
    if (found == live_.end() || state_.trials()[trial].attempts != attempt + 1) return nullptr;
    return &found->second;
  }

  void on(const Started& e, Outcome& out);
  void on(Reported& e, Outcome& out);
  void on(const Checkpointed& e, Outcome& out);
  void on(const Paused& e, Outcome& out);
  void on(const Finished& e, Outcome& out);
  void on(const Stopped& e, Outcome& out);
  void on(const Failed& e, Outcome& out);
  void on(const CheckpointLost& e, Outcome& out);
  void on(const SaveFailed& e, Outcome& out) {
    if (auto line = save_failures_.line(e, now_)) out.notices.push_back(std::move(*line));
  }
  void on(const Notice& e, Outcome& out) { out.notices.push_back(e.text); }
  void on(const HostGained& e, Outcome& out);
  void on(const HostLost& e, Outcome& out);

  void answer(TrialId trial, LiveTrial& run, int step, Outcome& out);
  void note_reported(TrialId trial, const Attributes& attributes, Outcome& out);
  bool settle_owed(TrialId trial, Outcome& out);
  static void remember_names(LiveTrial& run, const Metrics& metrics);
  std::string why_unjudged(const LiveTrial& run) const;
  void settle_exclusions(Outcome& out);
  void take_over(TrialId trial, Outcome& out);
  void stop_run(TrialId trial, LiveTrial& run, Phase phase, TrialState end, std::string reason, bool save,
                Outcome& out);
  void end_experiment(const std::string& why, Outcome& out);
  void end_trial(TrialId trial, TrialState state, std::optional<Cause> cause, Outcome& out, bool at_limit = false);
  void end_stopped(TrialId trial, const LiveTrial& run, Outcome& out);
  std::optional<Slot> find_slot(const Resources& need, const Placement::Excluded& barred);
  std::optional<Slot> find_present_slot(const Resources& need, Placement::Excluded elsewhere);
  void hold(TrialId trial, Launch go, Outcome& out);
  void settle_held(Outcome& out);
  void let_go(const std::string& host, const std::string& why, Outcome& out);
  void give_up_hosts(Outcome& out);
  std::vector<TrialId> held_on(const std::string& host) const;
  void requeue(TrialId trial, const std::string& why, Outcome& out);
  bool is_leaving(TrialId trial) const;
  LiveTrial leave(TrialId trial);  // gives the slot back
  const TrialEntry& require_open(TrialId trial) const;
  bool is_to_rest(TrialId trial) const { return all_rest_ || to_rest_.contains(trial); }
  void again(TrialId trial);
  void keep(const CheckpointInfo& checkpoint, Outcome& out);
  void drop(const CheckpointInfo& checkpoint, const std::string& why, Outcome& out);
  void drop_superfluous(Outcome& out);
  void unpin(LiveTrial& run);
  using Pins = std::unordered_map<TrialId, CheckpointInfo>;
  void release(Pins& pins, TrialId trial);
  void offer(TrialId trial);
  void review_offers();
  void settle_takeover(TrialId trial);
  std::vector<TrialId> live_ids() const;

  bool more_trials() const {
    return !exhausted_ && (rules_.samples == 0 || state_.trials().size() - state_.known() < rules_.samples);
  }
  enum class Created : std::uint8_t { one, none, later };  // later: its configuration is being computed
  Created create(Outcome& out);
  void launch(TrialId trial, Slot slot, Outcome& out);
  void exploit(const Choice& choice, Outcome& out);
  bool start_pending(Outcome& out);
  Placement::Excluded barred_for(TrialId trial, const Resources& need) const;
  bool in_doubt(TrialId trial, const std::string& host, const Cause& cause) const;
  void judge_hosts(Outcome& out);
  void refuse(TrialId trial, const std::string& why, Outcome& out);
  bool start_chosen(Outcome& out);
  bool settle_parked(TrialId trial, Slot& slot, Outcome& out);
  bool drain(Outcome& out);
  void require_progress() const;
  void require_sound(const Point& point, const std::string& who) const;
  Resources needs(TrialId trial) const { return needs(trial, state_.trials()[trial].point); }
  Resources needs(TrialId, const Point& point) const { return rules_.resources(state_.space().params(point)); }
  bool save_at_end() const { return rules_.checkpoint.every > 0 && rules_.checkpoint.at_end; }

  SaveFailures save_failures_;
  std::set<TrialId> overfull_;  // trials of which not every attribute is kept
  ExperimentState state_;
  ControlRules rules_;
  Placement placement_;
  Retention retention_;
  // Pinned: what trials took over, until they have saved by themselves: whatever happens before, they can go on from
  // it.
  Pins bases_;
  // What trials may take over: of each that can be a donor what it saved when it paused, the newest last. Pinned as
  // long as the scheduler may want it.
  struct Offer {
    CheckpointInfo checkpoint;
    int steps;         // of the pause
    bool last = true;  // of its last pause
    bool pinned = false;
  };
  std::map<TrialId, std::vector<Offer>> offers_;
  std::set<TrialId> empty_handed_;  // trials that had nothing to give at their last pause
  std::unordered_map<TrialId, LiveTrial> live_;
  struct Away {
    Seconds since;
    bool told = false;
  };
  std::map<std::string, Away> away_;                 // ordered: hosts that are lost and waited for
  std::map<TrialId, Launch> held_;                   // … and what begins there when they are back
  std::set<TrialId> stopped_;                        // of held_, to be taken off
  std::deque<TrialId> pending_;                      // created or to be tried again, in this order
  std::map<std::int64_t, TrialId> queue_;            // the same while the record is replayed, by place
  std::unordered_map<TrialId, std::int64_t> place_;  // … and each one's place
  std::map<std::string, bool> lost_;                 // hosts that were lost when the record ends; whether for good
  std::unordered_map<TrialId, Cause> doomed_;        // failed for good, by a record whose last word is missing
  bool replaying_ = true;
  HostFaults faults_;
  std::set<std::string> excluded_;  // hosts that a rule ruled out
  std::set<std::string> aside_;     // hosts where several trials failed, and trials fail nowhere else
  std::set<std::string> barred_;    // both
  std::int64_t judged_ = 0;         // what of the faults is in them
  bool hosts_changed_ = true;
  std::size_t elsewhere_ = 0;     // pending trials that wait for another host than the rest
  std::set<int> gained_;          // hosts that were said to be there
  std::optional<TrialId> best_;   // as the retention knows it
  TrialId newest_possible_ = -1;  // the last one created that some host can hold
  std::deque<Point> first_;       // configurations to try first that have no trial yet
  struct RecordedKnown {
    TrialId trial;
    Metrics metrics = {};
    int steps = 0;  // 0: its report is missing
    bool listed = false;
  };
  std::vector<RecordedKnown> recorded_known_;
  std::set<TrialId> to_rest_;  // by a person: each at its next report
  std::set<TrialId> resting_;  // … and those that are
  bool all_rest_ = false;
  Seconds now_ = 0;
  std::optional<std::string> ending_;
  bool interrupted_ = false, exhausted_ = false, done_ = false;
  bool told_nothing_to_take_over_ = false;
  bool searcher_waits_ = false;  // its last answer
};

}  // namespace hypertune

#ifndef HYPERTUNE_COMPILED
#include <hypertune/tune/impl/controller.hpp>
#include <hypertune/tune/impl/controller_events.hpp>
#include <hypertune/tune/impl/controller_person.hpp>
#include <hypertune/tune/impl/controller_slots.hpp>
#endif
