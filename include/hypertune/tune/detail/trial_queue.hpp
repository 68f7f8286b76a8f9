// The trials that wait for room, and those that the user has paused.
#pragma once

#include <hypertune/record/record.hpp>
#include <hypertune/trial/trial.hpp>
#include <hypertune/tune/detail/trial_table.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>

namespace hypertune::inline v0 {

/// Trials that wait for room, in their order, and trials that the user has paused.
struct TrialQueue {
  std::deque<TrialId> pending;    ///< created, or to be started again
  std::set<TrialId> to_pause;     ///< to be paused by the user's request, each at its next report
  std::set<TrialId> user_paused;  ///< … and those that are paused so
  bool all_paused = false;        ///< the whole experiment is paused: every trial pauses, and none starts

  bool is_to_pause(TrialId trial) const { return all_paused || to_pause.contains(trial); }
  bool holds(TrialId trial) const { return std::find(pending.begin(), pending.end(), trial) != pending.end(); }
  bool erase(TrialId trial) { return std::erase(pending, trial) > 0; }
  void ended(TrialId trial) {
    to_pause.erase(trial);
    user_paused.erase(trial);
  }
};

/// What a replay reconstructs besides the state of the trials: the order in which the earlier run would have started
/// the pending trials, trials whose end was not recorded any more, and hosts that were lost when it ended.
class ReplayedQueue {
 public:
  /// To be called after the record was applied.
  void follow(const record::Any& what, const TrialTable& trials) {
    if (const auto* created = std::get_if<record::TrialCreated>(&what)) {
      enter(created->trial, false);
    } else if (const auto* started = std::get_if<record::TrialStarted>(&what)) {
      leave(started->trial);
    } else if (const auto* failed = std::get_if<record::AttemptFailed>(&what)) {
      if (failed->retry) {
        failed_unended_.erase(failed->trial);
        enter(failed->trial, true);
      } else {
        failed_unended_.emplace(failed->trial, failed->cause);
      }
    } else if (const auto* ended = std::get_if<record::TrialEnded>(&what)) {
      failed_unended_.erase(ended->trial);
      if (trials[ended->trial].state == TrialState::pending)
        enter(ended->trial, false);  // reopened
      else
        leave(ended->trial);
    } else if (const auto* gained = std::get_if<record::HostGained>(&what)) {
      lost_.erase(gained->host);
    } else if (const auto* lost = std::get_if<record::HostLost>(&what)) {
      lost_[lost->host] = lost->for_good;
    }
  }
  /// The pending trials, in their order.
  std::deque<TrialId> take_pending() {
    std::deque<TrialId> trials;
    for (const auto& [place, trial] : std::exchange(queue_, {})) trials.push_back(trial);
    place_.clear();
    return trials;
  }
  /// Trials that have failed for good, but whose TrialEnded was not recorded any more.
  std::unordered_map<TrialId, Cause> take_failed_unended() { return std::exchange(failed_unended_, {}); }
  /// Hosts that were lost when the record ends, and whether for good.
  std::map<std::string, bool> take_lost() { return std::exchange(lost_, {}); }

 private:
  void leave(TrialId trial) {
    if (const auto node = place_.extract(trial)) queue_.erase(node.mapped());
  }
  void enter(TrialId trial, bool front) {
    leave(trial);
    const std::int64_t place = queue_.empty() ? 0 : front ? queue_.begin()->first - 1 : queue_.rbegin()->first + 1;
    queue_.emplace(place, trial);
    place_.emplace(trial, place);
  }

  std::map<std::int64_t, TrialId> queue_;  // by place
  std::unordered_map<TrialId, std::int64_t> place_;
  std::map<std::string, bool> lost_;
  std::unordered_map<TrialId, Cause> failed_unended_;
};

}  // namespace hypertune::inline v0
