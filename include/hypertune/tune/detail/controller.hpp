// The Controller: the only owner of trial state. It turns events into records and commands. No I/O, no clock, no lock.
#pragma once

#include <hypertune/detail/visit.hpp>
#include <hypertune/execute/detail/placement.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/tune/detail/dispatcher.hpp>
#include <hypertune/tune/detail/experiment_state.hpp>
#include <hypertune/tune/detail/gathered_losses.hpp>
#include <hypertune/tune/detail/judge.hpp>
#include <hypertune/tune/detail/requests/control.hpp>
#include <hypertune/tune/detail/requests/control_rules.hpp>
#include <hypertune/tune/detail/trial_queue.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>

namespace hypertune::inline v0 {

/// Decides what runs where and when: the Judge decides about trials, the Dispatcher places them. It knows time only
/// from the order of calls and from their argument `now`. Not thread-safe: the Tuner's strand makes one call at a time.
class Controller {
 public:
  Controller(ExperimentState state, ControlRules rules, Placement placement)
      : judge_(std::move(state), std::move(rules)), dispatcher_(judge_, std::move(placement)) {}
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  const ExperimentState& state() const { return judge_.state(); }
  const ControlRules& rules() const { return judge_.rules(); }
  /// If they are deferred, fill() or ask() must be called whenever work() returns true.
  Suggestions& suggestions() { return judge_.state().suggestions(); }

  /// Ordered runs: hosts that are not there yet, but have slots from the start. Trials placed on them wait for them.
  void expect_hosts(const std::vector<int>& hosts, Seconds now) {
    for (const int host : hosts) dispatcher_.expect_host(host, now);
  }
  /// The number of trials that count as running but have not begun because their hosts are not there.
  std::size_t held() const { return dispatcher_.held(); }

  // ---- Replay -----------------------------------------------------------------------------------------------------

  /// Applies one record of an earlier run.
  void replay(const Record& record) {
    judge_.replay(record);
    replayed_.follow(record.what, trials());
  }

  /// Raises the number of samples if it is too small for all of start_with. To be called before open_session().
  void make_room(Outcome& out) { judge_.make_room(out); }

  /// Tries failed trials again whose failures were left out of the replay. To be called before finish_replay().
  void try_again(std::span<const TrialId> trials, Seconds now, Outcome& out);

  /// Finishes what the earlier run left undone. Trials that ran go on from their last checkpoint, or, with `survivors`
  /// (an executor whose workers outlive the driver), from where they are. To be called after the last replayed record.
  void finish_replay(Seconds now, bool survivors, Outcome& out);

  // ---- Live -------------------------------------------------------------------------------------------------------

  /// Records a sealed checkpoint that an earlier run did not record. To be called before finish_replay().
  void found(const CheckpointInfo& checkpoint, Seconds now, Outcome& out) {
    judge_.set_now(now);
    judge_.keep(checkpoint, out);
  }

  /// Records the start of a driver. To be called after the replay, before everything else.
  void open_session(record::ExperimentStarted started, Seconds now, Outcome& out) {
    judge_.set_now(now);
    judge_.commit(std::move(started), out);
  }

  /// Records trials with known results, unless they are recorded already. Throws an Error of kind `usage` if a result
  /// lacks an objective, has less than one step, or does not fit the space.
  void add_known(std::span<const KnownResult> known, Seconds now, Outcome& out) {
    judge_.set_now(now);
    judge_.add_known(known, out);
  }

  /// Starts trials as long as there is room. To be called once at the start; handle() calls it.
  void fill(Seconds now, Outcome& out);

  /// Processes one event of the executor.
  void handle(Event event, Seconds now, Outcome& out) {
    judge_.set_now(now);
    detail::visit([&](auto& e) { on(e, out); }, event);
    fill(now, out);
  }

  /// To be called when time has passed: checks stop conditions on time, hosts that are waited for, and workers lost
  /// together.
  void tick(Seconds now, Outcome& out) {
    judge_.set_now(now);
    dispatcher_.give_up_hosts(out);
    for (const TrialId trial : losses_.due(now)) settle_losses(trial, out);
    dispatcher_.end_delays();
    if (!ending_ && !interrupted_)
      if (auto why = judge_.state().check_time(now)) end_experiment(*why, out);
    fill(now, out);
  }

  /// The user wants to end the run: nothing new starts; each trial is saved at its next report and then stopped. The
  /// experiment can be resumed. finished() is true when all trials have stopped.
  void interrupt() { interrupted_ = true; }
  /// The user has asked a second time, or the grace period is over: stops all trials without waiting for their next
  /// report.
  void interrupt_now(Seconds now, Outcome& out);
  /// Gives up waiting: trials that still run count as interrupted. No event may follow.
  void abandon(Seconds now, Outcome& out);

  /// When to call tick() next even if no event comes: a host or a lost worker will have been waited for long enough, or
  /// a new worker is tried again.
  std::optional<Seconds> next_give_up() const {
    std::optional<Seconds> at;
    for (const auto next : {dispatcher_.next_give_up(), losses_.next(), dispatcher_.next_growth()})
      if (next) at = std::min(at.value_or(*next), *next);
    return at;
  }
  /// Whether the trial holds a slot.
  bool holds_slot(TrialId trial) const { return dispatcher_.holds_slot(trial); }

  bool interrupted() const { return interrupted_; }
  /// Whether nothing runs and nothing will run.
  bool finished() const { return running() == 0 && done_; }
  /// Why the experiment ended, unless everything was tried.
  const std::optional<std::string>& why_ended() const { return ending_; }
  /// If nothing ended it, and there are fewer trials than were asked for all the same: a line about that.
  std::string why_fewer() const { return ending_ || interrupted_ ? "" : judge_.why_fewer(); }
  std::size_t running() const { return dispatcher_.running(); }
  const Placement& placement() const { return dispatcher_.placement(); }
  /// At the end: a line about lost checkpoints that the user has not been told about yet.
  std::optional<std::string> untold_save_failures() { return judge_.untold_save_failures(); }
  // ---- Requests of a user at another terminal. ----

  /// Carries out a request, for each of its trials separately. Requests to leave are handled by the driver, not here.
  ControlAnswer carry_out(const ControlRequest& request, Seconds now, Outcome& out);

  // Each of these returns a line for the user and throws an Error of kind `usage` if nothing was done. Call fill()
  // afterwards: there may be room for other trials.

  /// Ends a trial for good.
  std::string stop_trial(TrialId trial, Seconds now, Outcome& out);
  /// Saves a trial and frees its slot after its next report, until continue_trial(). For the scheduler it still runs.
  /// Lasts as long as this driver: a resumed experiment lets it go on.
  std::string pause_trial(TrialId trial);
  std::string continue_trial(TrialId trial);
  /// The same for all running trials; no trial starts meanwhile.
  std::string pause_all();
  std::string continue_all();
  /// Adds a configuration that is tried as soon as there is room. It counts as a sample; if none is left, the number of
  /// samples is raised.
  std::string add(const Params& params, Seconds now, Outcome& out);
  /// Records attributes of a trial in any state, or of the experiment (`trial` -1).
  std::string note(TrialId trial, const Attributes& attributes, Seconds now, Outcome& out);
  /// Gives a trial `workers` workers (0: any number) after its next report, as far as there is room. This is recorded,
  /// so that it also holds for a later driver.
  std::string resize_trial(TrialId trial, int workers, Seconds now, Outcome& out);
  /// Whether nothing runs because the user has paused trials or the whole experiment.
  bool is_paused() const {
    const auto& queue = dispatcher_.queue();
    return running() == 0 && !done_ && (queue.all_paused || !queue.user_paused.empty());
  }

  /// One sentence why the trial does not run now; empty if it runs or has ended.
  std::string why_pending(TrialId trial) const;

  // ---- Ask/tell: a trial without an executor --------------------------------------------------------------------

  /// Starts the next trial, which counts as running then; nullopt if there is none now, or never will be (exhausted()).
  std::optional<TrialId> ask(Seconds now, Outcome& out);
  bool exhausted() const { return judge_.exhausted(); }
  Attempt attempt(TrialId trial) const { return judge_.attempt(trial); }

 private:
  using Phase = LiveTrial::Phase;

  const TrialTable& trials() const { return judge_.trials(); }
  /// Paused before, and to go on as soon as there is room.
  bool is_continued(TrialId trial) const {
    return trials()[trial].state == TrialState::paused && dispatcher_.queue().holds(trial);
  }

  void on(const Started& e, Outcome& out);
  void on(Reported& e, Outcome& out);
  void on(const Checkpointed& e, Outcome& out);
  void on(const Paused& e, Outcome& out);
  void on(const Finished& e, Outcome& out);
  void on(const Stopped& e, Outcome& out);
  void on(Failed e, Outcome& out);
  void on(const MemberLost& e, Outcome& out);
  void on(const Resized& e, Outcome& out);
  void on(const GroupMessage&, Outcome&) {}  // only used within executors
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
  std::string give_up_newcomers(TrialId trial, LiveTrial& run, std::size_t count, int left, const std::string& cause,
                                Outcome& out);
  void use_new_room(Outcome& out);
  bool change_workers(TrialId trial, LiveTrial& run, int step, Outcome& out, bool arrived = false);
  void stop_run(TrialId trial, LiveTrial& run, Phase phase, TrialState end, std::string reason, bool save,
                Outcome& out);
  void end_experiment(const std::string& why, Outcome& out);
  void end_trial(TrialId trial, TrialState state, std::optional<Cause> cause, Outcome& out, bool at_limit = false);
  void end_stopped(TrialId trial, const LiveTrial& run, Outcome& out);
  /// Tells the user that a failure may be the fault of the host.
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
  std::size_t elsewhere_ = 0;     // pending trials that avoid a host which the others may use
  TrialId newest_possible_ = -1;  // the newest trial that fits on some host
  std::optional<std::string> ending_;
  bool interrupted_ = false, done_ = false;
  bool told_remark_ = false;  // Report::remark
};

}  // namespace hypertune::inline v0
