// The Dispatcher: where trials run. Hosts, slots, the queue and what is under way; it decides nothing about trials.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/execute/placement.hpp>
#include <hypertune/tune/control_rules.hpp>
#include <hypertune/tune/judge.hpp>
#include <hypertune/tune/trial_queue.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {
/// A slot as the record has it.
inline record::WorkerPlace place_of(const Slot& slot) { return {slot.host_name, slot.cpus, slot.gpus}; }
}  // namespace detail

/// Places and launches trials, and keeps what runs. A trial of several workers is placed as a whole, or waits and holds
/// nothing.
class Dispatcher {
 public:
  Dispatcher(Judge& judge, Placement placement) : judge_(judge), placement_(std::move(placement)) {}

  TrialQueue& queue() { return queue_; }
  const TrialQueue& queue() const { return queue_; }
  const Placement& placement() const { return placement_; }
  const Workers& workers() const { return judge_.rules().workers; }

  // ---- What runs ----

  std::size_t running() const { return live_.size(); }
  bool holds_slot(TrialId trial) const { return live_.contains(trial); }
  /// nullptr: it does not run, or not as this attempt.
  LiveTrial* find(TrialId trial, Attempt attempt) {
    LiveTrial* run = find(trial);
    return run != nullptr && judge_.attempt(trial) == attempt ? run : nullptr;
  }
  LiveTrial* find(TrialId trial) {
    const auto found = live_.find(trial);
    return found == live_.end() ? nullptr : &found->second;
  }
  const LiveTrial* find(TrialId trial) const {
    const auto found = live_.find(trial);
    return found == live_.end() ? nullptr : &found->second;
  }
  std::vector<TrialId> running_trials() const;
  bool is_leaving(TrialId trial) const {
    const auto* run = find(trial);
    return run != nullptr && run->phase != LiveTrial::Phase::running;
  }
  void launch(TrialId trial, Allocation allocation, Outcome& out);
  /// A trial whose workers have outlived the driver: the executor is told where it stands.
  void take_over(TrialId trial, Outcome& out);
  /// Tells a run to end. One that waits for its host is over with the next take_stopped().
  void stop(TrialId trial, bool save, Outcome& out);
  /// The run has ended: its slots are free.
  LiveTrial leave(TrialId trial);
  /// It has lost its place, not by its own doing, and is the first to be started again.
  void requeue(TrialId trial, const std::string& why, Outcome& out);

  // ---- Places ----

  /// Where a trial that needs this could start now. Hosts that are there come first; those that are away count all the
  /// same, so that there are as many slots as ever.
  std::optional<Allocation> find_room(const Resources& need, const Placement::Excluded& barred);
  void give_back(const Allocation& allocation);
  /// A parked run goes on where it is held. Where there is no room, or no trust any more, the run is given up and the
  /// trial goes on elsewhere from its checkpoint; where it has none, its place there is waited for. False: it waits,
  /// and the allocation is given back.
  bool bring_home(TrialId trial, Allocation& allocation, Outcome& out);
  bool possible(const Resources& need, const Placement::Excluded& barred) const {
    return placement_.possible(need, workers(), barred);
  }
  std::string why_not(const Resources& need, const Placement::Excluded& barred) const {
    return placement_.why_not(need, workers(), barred);
  }
  /// Why a trial that waits has no place. Empty: it has.
  std::string why_no_room(TrialId trial) const;

  // ---- Changes of workers ----

  /// How many workers a trial is to have at most, and who wants it so.
  struct Wanted {
    int most;
    const char* why;
    bool by_person = false;
  };
  /// `run`: nullptr where it is about to start.
  Wanted wanted_workers(TrialId trial, const LiveTrial* run) const;
  /// A person has asked for another number: what was tried for the one before says nothing about it.
  void try_anew(TrialId trial) { restarted_.erase(trial); }
  /// Whether a run whose workers cannot change would have more of them if it began again. Asked once for each number
  /// that it has, so that no run begins again and again for nothing.
  bool worth_restart(TrialId trial, const LiveTrial& run, int most);
  /// Whether there may be more room than when this was asked last.
  bool take_freed() { return std::exchange(freed_, false); }

  /// Between two steps: a run that is to have another number of workers gets those that there is room for.
  void resize(TrialId trial, LiveTrial& run, int workers, const std::string& why, Outcome& out);
  /// Workers are lost: the others go on, with new ones where there is room. `failed`: they were not taken away, which
  /// may be their hosts' doing. False: too few are left.
  bool replace(TrialId trial, LiveTrial& run, const std::vector<int>& lost, const std::string& why, bool failed,
               Outcome& out);
  /// Whether there is room for as many workers as are needed in place of these.
  bool room_beside(TrialId trial, const LiveTrial& run, const std::vector<int>& lost);
  /// The same workers, as another generation.
  void form_again(TrialId trial, LiveTrial& run, const std::string& why, Outcome& out);
  void resized(LiveTrial& run);

  // ---- Hosts ----

  /// Ordered: it is not there yet, and waited for as one that was lost at `now`.
  void expect_host(int host, Seconds now) {
    away_.try_emplace(placement_.host_name(host), Away{.since = now, .told = true, .first = true, .why = {}});
  }
  void host_gained(const HostGained& e, Outcome& out);
  void host_lost(const HostLost& e, Outcome& out);
  /// Those that were lost when the record of an earlier run ended.
  void lose_again(const std::map<std::string, bool>& hosts);
  void hosts_changed() { hosts_changed_ = true; }
  /// Which hosts are set aside now.
  void judge_hosts(Outcome& out);
  /// Who goes on with an experiment whose every host was excluded has seen to them.
  void review_exclusions(Outcome& out);
  /// Hosts that are of no use.
  const Placement::Excluded& barred() const { return barred_; }
  /// Where the trial is not to go: to those; to those where it, or others with the same cause, have failed; where no
  /// host would be left, to those where it has; else to the last of them.
  Placement::Excluded barred_for(TrialId trial, const Resources& need) const;
  /// Whether a failure may be the host's doing, and there is another one to find out.
  bool in_doubt(TrialId trial, const std::string& host, const Cause& cause) const;
  /// Where what an attempt failed of has happened: on its one host, or on that of the worker that has failed; empty:
  /// nobody knows.
  static std::string host_of(const LiveTrial& run, const Cause& cause) {
    const int workers = run.allocation.workers();
    if (!run.failed_on.empty()) return run.failed_on;
    if (cause.rank >= 0 && cause.rank < workers) return run.allocation[cause.rank].host_name;
    return workers == 1 ? run.allocation.lead.host_name : std::string();
  }

  // ---- Hosts that are waited for (ordered) ----

  /// Those that were told to stop while they waited for their host; `all`: whoever waits.
  std::vector<TrialId> take_stopped(bool all);
  /// Before anything else is started: who waits for a host goes on elsewhere as soon as there is room.
  void move_held(Outcome& out);
  void give_up_hosts(Outcome& out);
  /// Why a trial that has been started has not begun: its host is not there. Empty: it is.
  std::string why_held(TrialId trial) const;
  /// How many trials have been started and not begun.
  std::size_t held() const { return held_.size(); }
  /// When a host has been waited for long enough.
  std::optional<Seconds> next_give_up() const;

 private:
  std::optional<Allocation> place(const Resources& need, const Placement::Excluded& barred);
  bool forming(const UnderWay& run) const;
  std::optional<Allocation> place_at(const ExperimentState::Whereabouts& where, const Resources& need);
  std::optional<Allocation> find_present(const Resources& need, Placement::Excluded elsewhere);
  static Allocation pick(const Allocation& all, const std::vector<int>& ranks);
  std::vector<Slot> place_beside(TrialId trial, const LiveTrial& run, const std::vector<int>& ranks, int least,
                                 int most);
  void form(TrialId trial, LiveTrial& run, std::vector<int> ranks, std::vector<Slot> fresh, const std::string& why,
            Outcome& out, std::vector<std::string> failed_on = {});
  const std::string* away_host(const Allocation& allocation) const;
  void hold(TrialId trial, Launch go, Outcome& out);
  std::vector<TrialId> held_on(const std::string& host) const;
  void part_held(const std::string& host, Outcome& out);
  void let_go(const std::string& host, const std::string& why, Outcome& out);

  Judge& judge_;
  Placement placement_;
  TrialQueue queue_;
  std::unordered_map<TrialId, LiveTrial> live_;
  struct Away {
    Seconds since;
    bool told = false;     // that it is waited for, or nobody need be
    bool first = false;    // it was never there
    std::string why = {};  // as the executor says it
  };
  std::map<std::string, Away> away_;  // ordered: hosts that are lost and waited for
  std::map<TrialId, int> restarted_;  // workers that a run had when it began again to have more
  std::map<TrialId, Launch> held_;    // … and what begins there when they are back
  std::set<TrialId> stopped_;         // of held_, to be taken off
  std::set<int> gained_;              // hosts that were said to be there
  std::set<std::string> aside_;       // hosts where several trials failed, and trials fail nowhere else
  std::set<std::string> barred_;      // these, and those that a rule excludes
  std::int64_t judged_ = 0;           // what of the faults is in them
  bool hosts_changed_ = true;
  bool outside_told_ = false;  // that hosts are outside the group's network
  bool freed_ = false;         // slots, or a host is there that was not
};

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/tune/impl/dispatcher.hpp>
#include <hypertune/tune/impl/dispatcher_hosts.hpp>
#include <hypertune/tune/impl/dispatcher_workers.hpp>
#endif
