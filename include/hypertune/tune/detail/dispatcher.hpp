// The Dispatcher: manages hosts, slots, the queue and the running trials. It decides where trials run, not what becomes
// of them.
#pragma once

#include <hypertune/execute/detail/placement.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/tune/detail/judge.hpp>
#include <hypertune/tune/detail/requests/control_rules.hpp>
#include <hypertune/tune/detail/trial_queue.hpp>

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
/// A slot in the form that is recorded.
inline record::WorkerPlace place_of(const Slot& slot) { return {slot.host_name, slot.cpus, slot.gpus}; }
}  // namespace detail

/// Places and launches trials, and keeps the state of the running ones. A trial of several workers is placed as a
/// whole; while it waits it holds no slots.
class Dispatcher {
 public:
  Dispatcher(Judge& judge, Placement placement) : judge_(judge), placement_(std::move(placement)) {}

  TrialQueue& queue() { return queue_; }
  const TrialQueue& queue() const { return queue_; }
  const Placement& placement() const { return placement_; }
  const Workers& workers() const { return judge_.rules().workers; }

  // ---- Running trials ----

  std::size_t running() const { return live_.size(); }
  bool holds_slot(TrialId trial) const { return live_.contains(trial); }
  /// nullptr if the trial does not run, or not as this attempt.
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
  /// Takes over a trial whose workers have outlived an earlier driver: tells the executor the trial's state.
  void take_over(TrialId trial, Outcome& out);
  /// Tells a run to end. A run that waits for its host ends by the next take_stopped().
  void stop(TrialId trial, bool save, Outcome& out);
  /// The run has ended: its slots are free.
  LiveTrial leave(TrialId trial);
  /// The trial has lost its place by no fault of its own: puts it at the front of the queue.
  void requeue(TrialId trial, const std::string& why, Outcome& out);

  // ---- Places ----

  /// Slots where a trial that needs `need` could start now. Prefers hosts that are connected; hosts that are away count
  /// as well, so that an ordered run always has the same slots.
  std::optional<Allocation> find_room(const Resources& need, const Placement::Excluded& barred);
  void give_back(const Allocation& allocation);
  /// For a paused trial that is about to go on: a parked run goes on where the executor keeps it. If there is no room
  /// there, or that host is not to be used any more, the run is given up and the trial goes on elsewhere from its
  /// checkpoint; without a checkpoint it waits for its place there. False: it waits, and the allocation was given back.
  bool place_parked(TrialId trial, Allocation& allocation, Outcome& out);
  bool possible(const Resources& need, const Placement::Excluded& barred) const {
    return placement_.possible(need, workers(), barred);
  }
  std::string why_not(const Resources& need, const Placement::Excluded& barred) const {
    return placement_.why_not(need, workers(), barred);
  }
  /// Why there is no room for a waiting trial. Empty if there is.
  std::string why_no_room(TrialId trial) const;

  // ---- Changes of workers ----

  /// How many workers a trial is to have at most, and why.
  struct Wanted {
    int most;
    const char* why;
    bool by_user = false;
  };
  /// `run`: nullptr if the trial is about to start.
  Wanted wanted_workers(TrialId trial, const LiveTrial* run) const;
  /// The user has asked for another number of workers: forget what was tried for the number before.
  void forget_restart(TrialId trial) {
    restarted_.erase(trial);
    not_before_.erase({trial, judge_.attempt(trial)});
  }
  /// Whether a run whose workers cannot change would get another number of them if it began again. To get more, it is
  /// allowed once for each number that the run has, so that it does not begin again and again in vain.
  bool worth_restart(TrialId trial, const LiveTrial& run, int most);
  /// Whether there may be more room than at the last call.
  bool take_freed() { return std::exchange(freed_, false); }
  /// A trial is to get no more workers before `until`.
  void delay_growth(TrialId trial, Seconds until) { not_before_[{trial, judge_.attempt(trial)}] = until; }
  bool may_grow(TrialId trial) const { return !not_before_.contains({trial, judge_.attempt(trial)}); }
  /// Trials that were to wait until now may grow.
  void end_delays() {
    freed_ |= std::erase_if(not_before_, [now = judge_.now()](const auto& each) { return each.second <= now; }) > 0;
  }
  std::optional<Seconds> next_growth() const;

  /// Between two steps: gives a run another number of workers, as far as there is room.
  void resize(TrialId trial, LiveTrial& run, int workers, const std::string& why, Outcome& out);
  /// Workers are lost: the others go on, with new ones if too few are left. `starting`: ranks that are not ready yet;
  /// they are ended if enough others are left. `failed`: the lost ones failed, possibly because of their hosts; they
  /// were not preempted. False: there are too few workers and no room for new ones.
  bool replace(TrialId trial, LiveTrial& run, const std::vector<int>& lost, const std::vector<int>& starting,
               std::string why, bool failed, Outcome& out);
  /// Whether there is room for the workers that would be needed if the `lost` ones were gone.
  bool room_beside(TrialId trial, const LiveTrial& run, const std::vector<int>& lost);
  /// Forms another generation of the same workers.
  void form_again(TrialId trial, LiveTrial& run, const std::string& why, Outcome& out);
  void resized(LiveTrial& run);

  // ---- Hosts ----

  /// Ordered runs: the host is not there yet, and is waited for like one that was lost at `now`.
  void expect_host(int host, Seconds now) {
    away_.try_emplace(placement_.host_name(host), Away{.since = now, .told = true, .first = true, .why = {}});
  }
  void host_gained(const HostGained& e, Outcome& out);
  void host_lost(const HostLost& e, Outcome& out);
  /// Marks hosts as lost that were lost when the record of an earlier run ended.
  void mark_hosts_lost(const std::map<std::string, bool>& hosts);
  void hosts_changed() { hosts_changed_ = true; }
  /// Determines which hosts are set aside now.
  void judge_hosts(Outcome& out);
  /// At a resumption: if every usable host was excluded, they are used again; presumably the user has repaired them.
  void review_exclusions(Outcome& out);
  /// Hosts that are not used: excluded or set aside.
  const Placement::Excluded& barred() const { return barred_; }
  /// Hosts on which the trial is not to be placed: barred() and the hosts where it, or other trials with the same
  /// cause, have failed. If that would leave none, only those where the trial itself has failed; then only the last of
  /// these.
  Placement::Excluded barred_for(TrialId trial, const Resources& need) const;
  /// Whether a failure may be the fault of the host, and there is another host on which that can be tried.
  bool in_doubt(TrialId trial, const std::string& host, const Cause& cause) const;
  /// The host on which an attempt failed: its only host, or the host of the worker that failed. Empty if unknown.
  static std::string host_of(const LiveTrial& run, const Cause& cause) {
    const int workers = run.allocation.workers();
    if (!run.failed_on.empty()) return run.failed_on;
    if (cause.rank >= 0 && cause.rank < workers) return run.allocation[cause.rank].host_name;
    return workers == 1 ? run.allocation.lead.host_name : std::string();
  }

  // ---- Hosts that are waited for (ordered runs) ----

  /// Takes the trials that were told to stop while they waited for their host. `all`: all that wait for a host.
  std::vector<TrialId> take_stopped(bool all);
  /// Trials that wait for a host go on elsewhere as soon as there is room. To be called before anything else is
  /// started.
  void move_held(Outcome& out);
  void give_up_hosts(Outcome& out);
  /// Why a trial that counts as started has not begun: its host is not there. Empty if its host is there.
  std::string why_held(TrialId trial) const;
  /// The number of trials that count as started but have not begun.
  std::size_t held() const { return held_.size(); }
  /// When the next host will have been waited for long enough.
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
  void requeue_unreachable(const std::string& host, Outcome& out);
  void requeue_held(const std::string& host, const std::string& why, Outcome& out);

  Judge& judge_;
  Placement placement_;
  TrialQueue queue_;
  std::unordered_map<TrialId, LiveTrial> live_;
  struct Away {
    Seconds since;
    bool told = false;     // the user was told that it is waited for, or need not be
    bool first = false;    // it has never been there
    std::string why = {};  // the executor's reason
  };
  std::map<std::string, Away> away_;  // ordered runs: hosts that are lost and waited for
  std::map<TrialId, int> restarted_;  // number of workers that a run had when it began again for more
  std::map<TrialId, Launch> held_;    // launches that wait for hosts of away_
  std::set<TrialId> stopped_;         // trials of held_ that were told to stop
  std::set<int> gained_;              // hosts that the executor has announced
  std::set<std::string> aside_;       // hosts where several trials failed that fail nowhere else
  std::set<std::string> barred_;      // aside_ and Judge::excluded()
  std::int64_t judged_ = 0;           // version of the faults that barred_ is based on
  bool hosts_changed_ = true;
  bool outside_told_ = false;  // the user was told that hosts are outside the group's network
  bool freed_ = false;         // slots were freed, or a host has appeared
  std::map<std::pair<TrialId, Attempt>, Seconds> not_before_;  // runs that get no more workers until then
};

}  // namespace hypertune::inline v0
