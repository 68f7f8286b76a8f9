// The Controller: the one owner of every trial's life. Events in; records and commands out; no I/O, no clock, no lock.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/detail/visit.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/execute/placement.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/tune/control.hpp>
#include <hypertune/tune/control_rules.hpp>
#include <hypertune/tune/dispatcher.hpp>
#include <hypertune/tune/experiment_state.hpp>
#include <hypertune/tune/gathered_losses.hpp>
#include <hypertune/tune/judge.hpp>
#include <hypertune/tune/trial_queue.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>

namespace hypertune::inline v0 {

/// Decides what runs where and when: asks the Judge what becomes of trials, and has the Dispatcher carry that out where
/// there is room. The order of calls is its only notion of time beside the `now` it is given. Calls come one at a time
/// (the Tuner's strand).
class Controller {
 public:
  Controller(ExperimentState state, ControlRules rules, Placement placement)
      : judge_(std::move(state), std::move(rules)), dispatcher_(judge_, std::move(placement)) {}
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  const ExperimentState& state() const { return judge_.state(); }
  const ControlRules& rules() const { return judge_.rules(); }
  /// Where they are deferred, fill() or ask() is to be called whenever work() has an answer.
  Suggestions& suggestions() { return judge_.state().suggestions(); }

  /// Ordered: these are not there yet, but have slots from the start; who is placed there waits for them.
  void expect_hosts(const std::vector<int>& hosts, Seconds now) {
    for (const int host : hosts) dispatcher_.expect_host(host, now);
  }
  /// How many of the trials that count as running have not begun, as their hosts are not there.
  std::size_t held() const { return dispatcher_.held(); }

  // ---- Replay -----------------------------------------------------------------------------------------------------

  /// Takes over one record of an earlier run.
  void replay(const Record& record) {
    judge_.replay(record);
    replayed_.follow(record.what, trials());
  }

  /// Before open_session(): where configurations that are to be tried first have no place among the samples, there are
  /// so many samples more.
  void make_room(Outcome& out) { judge_.make_room(out); }

  /// Before finish_replay(): trials that have failed, by records that were replayed as if they had not.
  void try_again(std::span<const TrialId> trials, Seconds now, Outcome& out);

  /// After the last replayed record: settles what the earlier run left undone. Trials that ran go on from their last
  /// checkpoint, or (`survivors`: an executor whose workers outlive the driver) from where they were.
  void finish_replay(Seconds now, bool survivors, Outcome& out);

  // ---- Live -------------------------------------------------------------------------------------------------------

  /// A sealed checkpoint that an earlier run left and did not record. Before finish_replay().
  void found(const CheckpointInfo& checkpoint, Seconds now, Outcome& out) {
    judge_.set_now(now);
    judge_.keep(checkpoint, out);
  }

  /// Records that a driver takes up the experiment. Before everything else but the replay.
  void open_session(record::ExperimentStarted started, Seconds now, Outcome& out) {
    judge_.set_now(now);
    judge_.commit(std::move(started), out);
  }

  /// Records trials whose results the user knows, as far as they are not recorded yet. Error of kind `usage` if one
  /// lacks a metric that is tuned, or does not fit the space.
  void add_known(std::span<const KnownResult> known, Seconds now, Outcome& out) {
    judge_.set_now(now);
    judge_.add_known(known, out);
  }

  /// Starts what there is room for. Called once at the start; handle() does it by itself.
  void fill(Seconds now, Outcome& out);

  /// Takes one event of the executor.
  void handle(Event event, Seconds now, Outcome& out) {
    judge_.set_now(now);
    detail::visit([&](auto& e) { on(e, out); }, event);
    fill(now, out);
  }

  /// Time has passed: stop conditions on time, hosts that are waited for, and workers that are lost together.
  void tick(Seconds now, Outcome& out) {
    judge_.set_now(now);
    dispatcher_.give_up_hosts(out);
    for (const TrialId trial : losses_.due(now)) settle_losses(trial, out);
    if (!ending_ && !interrupted_)
      if (auto why = judge_.state().check_time(now)) end_experiment(*why, out);
    fill(now, out);
  }

  /// The user wants to leave: nothing new starts, each run is saved at its next report and then let go. The experiment
  /// can be resumed. finished() is true when all have left.
  void interrupt() { interrupted_ = true; }
  /// Second thoughts of the same user, or the end of the grace period: leave without waiting for the next report.
  void interrupt_now(Seconds now, Outcome& out);
  /// The end of all patience: what still runs counts as interrupted, whatever becomes of it. No event may come after.
  void abandon(Seconds now, Outcome& out);

  /// When tick() is to be called though nothing happens: something has been waited for long enough then.
  std::optional<Seconds> next_give_up() const {
    const auto host = dispatcher_.next_give_up(), loss = losses_.next();
    return host && loss ? std::min(*host, *loss) : host ? host : loss;
  }
  /// Whether it holds a slot.
  bool holds_slot(TrialId trial) const { return dispatcher_.holds_slot(trial); }

  bool interrupted() const { return interrupted_; }
  /// Nothing runs and nothing will.
  bool finished() const { return running() == 0 && done_; }
  /// Why the experiment ended, where it was not for having tried everything.
  const std::optional<std::string>& why_ended() const { return ending_; }
  std::size_t running() const { return dispatcher_.running(); }
  const Placement& placement() const { return dispatcher_.placement(); }
  /// What the user has not been told yet of checkpoints that could not be kept; for the end.
  std::optional<std::string> untold_save_failures() { return judge_.untold_save_failures(); }
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
  /// Has a trial go on with so many workers (0: any number) after its next report, as far as there is room. It is
  /// in the record, so that it holds in a later driver, too.
  std::string resize_trial(TrialId trial, int workers, Seconds now, Outcome& out);
  /// Nothing runs, as a person wants it so.
  bool rests() const {
    const auto& queue = dispatcher_.queue();
    return running() == 0 && !done_ && (queue.all_rest || !queue.resting.empty());
  }

  /// One sentence why the trial does not run now; empty when it runs or has ended.
  std::string why_pending(TrialId trial) const;

  // ---- Ask/tell: a trial without an executor --------------------------------------------------------------------

  /// Creates the next trial and counts it as running; nullopt when there is none (now, or ever: exhausted()).
  std::optional<TrialId> ask(Seconds now, Outcome& out);
  bool exhausted() const { return judge_.exhausted(); }
  Attempt attempt(TrialId trial) const { return judge_.attempt(trial); }

 private:
  using Phase = LiveTrial::Phase;

  const TrialTable& trials() const { return judge_.trials(); }

  void on(const Started& e, Outcome& out);
  void on(Reported& e, Outcome& out);
  void on(const Checkpointed& e, Outcome& out);
  void on(const Paused& e, Outcome& out);
  void on(const Finished& e, Outcome& out);
  void on(const Stopped& e, Outcome& out);
  void on(const Failed& e, Outcome& out);
  void on(const MemberLost& e, Outcome& out);
  void on(const Resized& e, Outcome& out);
  void on(const GroupMessage&, Outcome&) {}  // within executors only
  void on(const CheckpointLost& e, Outcome& out);
  void on(const SaveFailed& e, Outcome& out) {
    if (auto line = judge_.line(e)) out.notices.push_back(std::move(*line));
  }
  void on(const Notice& e, Outcome& out) { out.notices.push_back(e.text); }
  void on(const HostGained& e, Outcome& out) { dispatcher_.host_gained(e, out); }
  void on(const HostLost& e, Outcome& out) { dispatcher_.host_lost(e, out); }

  void answer(TrialId trial, LiveTrial& run, int step, Outcome& out, bool again = false);
  void settle_losses(TrialId trial, Outcome& out);
  void lose_workers(const MemberLost& e, Outcome& out);
  void use_new_room(Outcome& out);
  bool change_workers(TrialId trial, LiveTrial& run, int step, Outcome& out);
  void stop_run(TrialId trial, LiveTrial& run, Phase phase, TrialState end, std::string reason, bool save,
                Outcome& out);
  void end_experiment(const std::string& why, Outcome& out);
  void end_trial(TrialId trial, TrialState state, std::optional<Cause> cause, Outcome& out, bool at_limit = false);
  void end_stopped(TrialId trial, const LiveTrial& run, Outcome& out);
  /// Says that a failure may be the host's doing.
  void say_doubted(TrialId trial, const std::string& host, const Cause& cause, Outcome& out);
  const TrialEntry& require_open(TrialId trial) const;
  void again(TrialId trial);

  bool full() const {
    const int concurrency = rules().concurrency;
    return concurrency > 0 && running() >= static_cast<std::size_t>(concurrency);
  }
  bool start_pending(Outcome& out);
  void refuse(TrialId trial, const std::string& why, Outcome& out);
  bool start_chosen(Outcome& out);
  bool drain(Outcome& out);

  Judge judge_;
  Dispatcher dispatcher_;
  GatheredLosses losses_;
  ReplayedQueue replayed_;
  std::size_t elsewhere_ = 0;     // pending trials that wait for another host than the rest
  TrialId newest_possible_ = -1;  // the last one created that some host can hold
  std::optional<std::string> ending_;
  bool interrupted_ = false, done_ = false;
};

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/tune/impl/controller.hpp>
#include <hypertune/tune/impl/controller_events.hpp>
#include <hypertune/tune/impl/controller_person.hpp>
#include <hypertune/tune/impl/controller_slots.hpp>
#endif
