// PodTable: which pod belongs to which worker, which pods are of no use, and which nodes are avoided. No I/O, no
// clock.
#pragma once

#include "pod_state.hpp"

#include <hypertune/trial/trial.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::k8s {

/// The pods of one experiment, as reported by Kubernetes. Times are seconds of any steady clock. Not thread-safe.
class PodTable {
 public:
  /// Seconds for which a node is avoided after a pod was lost on it: longer than Kubernetes takes to notice (40 s or
  /// more).
  static constexpr Seconds avoid_for = 120;

  /// Takes a reported state of a pod. False: nothing has changed.
  bool see(PodState state, Seconds now) {
    auto& pod = pods_[state.name];
    // The status may show the start later than start() was called.
    if (state.phase == PodState::Phase::waiting && pod.started) run(state);
    // The report may be older than its deletion.
    if (pod.deleted) state.deleted = state.leaving = true;
    // Remember that it ended by itself, as it may be deleted before anyone asks.
    state.ended_by_itself =
        !state.disrupted && (pod.state.ended_by_itself || (state.phase == PodState::Phase::ended && !state.leaving));
    const bool news = pod.state.name.empty() || pod.state.phase != state.phase || pod.state.leaving != state.leaving ||
                      pod.state.sentence != state.sentence || pod.state.node != state.node ||
                      pod.state.driver != state.driver || pod.state.deleted != state.deleted ||
                      pod.state.memory != state.memory || pod.state.cannot_grow != state.cannot_grow;
    if (state.prospect != PodState::Prospect::unlikely)
      pod.unlikely_since.reset();
    else if (!pod.unlikely_since)
      pod.unlikely_since = now;
    pod.state = std::move(state);
    return news;
  }
  /// A pod is known to run before its status shows it. False: that was known, or the pod is not there.
  bool start(const std::string& name) {
    const auto pod = pods_.find(name);
    if (pod == pods_.end() || pod->second.state.phase != PodState::Phase::waiting) return false;
    pod->second.started = true;
    pod->second.unlikely_since.reset();
    run(pod->second.state);
    return true;
  }
  /// Its deletion has been requested; the report of that comes later.
  void deleted(const std::string& name) {
    if (const auto pod = pods_.find(name); pod != pods_.end())
      pod->second.deleted = pod->second.state.deleted = pod->second.state.leaving = true;
  }
  /// The pod does not exist any more.
  void forget(const std::string& pod) {
    if (const auto found = pods_.find(pod); found != pods_.end()) {
      constexpr std::size_t most = 1000;
      if (ends_.size() >= most) ends_.erase(ends_.begin());
      ends_.insert_or_assign(pod, std::move(found->second.state));
      pods_.erase(found);
    }
    discarded_.erase(pod);
  }
  /// Nothing is to be run in this pod again.
  void discard(const std::string& pod) { discarded_.insert(pod); }
  void discard_all_of(const std::string& worker) {
    for (const auto& [name, pod] : pods_)
      if (pod.state.worker == worker) discard(name);
  }
  /// Nothing is to be run in this pod again, because it did not answer. New pods are also kept off its node for a
  /// while, unless the pod is known to have ended by itself, or it alone was taken away (deleted, evicted, preempted).
  void discard_and_avoid_node(const std::string& pod, Seconds now) {
    const auto* state = find(pod);
    const bool own = state != nullptr && (state->leaving || state->phase == PodState::Phase::ended);
    if (state != nullptr && (!own || is_doing_of_node(*state))) avoid(state->node, now);
    discard(pod);
  }
  /// Keeps new pods off this node for a while.
  void avoid(const std::string& node, Seconds now) {
    if (!node.empty()) avoided_[node] = now + avoid_for;
  }
  /// Allows all nodes again, because the others have no room.
  void clear_avoided() { avoided_.clear(); }
  std::vector<std::string> avoided(Seconds now) {
    std::erase_if(avoided_, [&](const auto& each) { return each.second <= now; });
    std::vector<std::string> nodes;
    for (const auto& each : avoided_) nodes.push_back(each.first);
    return nodes;
  }

  const PodState* find(const std::string& pod) const {
    const auto found = pods_.find(pod);
    return found == pods_.end() ? nullptr : &found->second.state;
  }
  /// Also finds a pod that does not exist any more, in its last state.
  const PodState* find_or_last(const std::string& pod) const {
    if (const auto* there = find(pod)) return there;
    const auto found = ends_.find(pod);
    return found == ends_.end() ? nullptr : &found->second;
  }
  /// A pod that ended by itself, even if it was deleted afterwards; otherwise nullptr.
  const PodState* find_ended_by_itself(const std::string& pod) const {
    const auto* state = find_or_last(pod);
    return state != nullptr && state->ended_by_itself ? state : nullptr;
  }
  /// The pod that the worker can use, running or on its way to running.
  const PodState* usable_of(const std::string& worker) const {
    const PodState* best = nullptr;
    for (const auto& [name, pod] : pods_)
      if (pod.state.worker == worker && is_usable(pod.state) &&
          (best == nullptr || (pod.state.phase == PodState::Phase::running && best->phase != PodState::Phase::running)))
        best = &pod.state;
    return best;
  }
  bool is_usable(const PodState& state) const {
    return state.phase != PodState::Phase::ended && !state.leaving && state.prospect != PodState::Prospect::never &&
           !discarded_.contains(state.name);
  }
  /// Since when it has been unlikely that this pod will run without a correction.
  std::optional<Seconds> unlikely_since(const std::string& pod) const {
    const auto found = pods_.find(pod);
    return found == pods_.end() ? std::nullopt : found->second.unlikely_since;
  }

  /// Declares that this worker may have pods. Pods of other workers are superfluous.
  void want(const std::string& worker) { wanted_.insert(worker); }
  void release(const std::string& worker) { wanted_.erase(worker); }
  bool wants(const std::string& worker) const { return wanted_.contains(worker); }

  /// Pods to be deleted: those that are discarded, have ended, or belong to no wanted worker, and all but one of each
  /// worker's. Without those that are being deleted already.
  std::vector<std::string> superfluous() const {
    std::vector<std::string> names;
    for (const auto& [name, pod] : pods_) {
      if (is_going_away(pod.state)) continue;
      const auto* kept = wanted_.contains(pod.state.worker) ? usable_of(pod.state.worker) : nullptr;
      if (kept == nullptr || kept->name != name) names.push_back(name);
    }
    return names;
  }
  /// Running pods with less memory than that, of those that have a limit.
  std::vector<PodState> with_less_memory(std::uint64_t memory) const {
    std::vector<PodState> pods;
    for (const auto& [name, pod] : pods_)
      if (is_usable(pod.state) && pod.state.phase == PodState::Phase::running && pod.state.memory > 0 &&
          (pod.state.memory < memory || pod.state.cannot_grow))
        pods.push_back(pod.state);
    return pods;
  }
  /// Usable pods that were given the address of another driver.
  std::vector<std::string> with_other_driver(const std::string& driver) const {
    std::vector<std::string> names;
    for (const auto& [name, pod] : pods_)
      if (is_usable(pod.state) && pod.state.driver != driver) names.push_back(name);
    return names;
  }
  /// Pods that are not being deleted.
  std::vector<std::string> remaining() const {
    std::vector<std::string> names;
    for (const auto& [name, pod] : pods_)
      if (!is_going_away(pod.state)) names.push_back(name);
    return names;
  }
  /// Names of all existing pods except those whose deletion has been requested.
  std::vector<std::string> all() const {
    std::vector<std::string> names;
    for (const auto& [name, pod] : pods_)
      if (!pod.state.deleted) names.push_back(name);
    return names;
  }
  /// Pods in use that have been taken away, or are about to be, since the last call; without those that were discarded.
  std::vector<PodState> newly_leaving() {
    std::vector<PodState> news;
    for (auto& [name, pod] : pods_)
      if ((pod.state.leaving || pod.state.disrupted) && !pod.told && !discarded_.contains(name) &&
          wanted_.contains(pod.state.worker)) {
        pod.told = true;
        news.push_back(pod.state);
      }
    return news;
  }

 private:
  // Whether it need not be deleted, or not yet.
  static bool is_going_away(const PodState& state) {
    return state.deleted || (state.leaving && state.phase != PodState::Phase::ended);
  }
  static void run(PodState& state) {
    state.phase = PodState::Phase::running;
    state.prospect = PodState::Prospect::likely;
    if (!state.leaving) state.reason = state.sentence = "";
  }
  static bool is_doing_of_node(const PodState& state) {
    return state.reason == "DeletionByTaintManager" || state.reason == "DeletionByPodGC" ||
           state.reason == "TerminationByKubelet";
  }

  struct Pod {
    PodState state = {};
    std::optional<Seconds> unlikely_since = {};
    bool told = false;
    bool started = false;  // see start(); overrides the reported status
    bool deleted = false;  // see deleted(); overrides the reported status
  };
  std::map<std::string, Pod> pods_;
  std::map<std::string, PodState> ends_;  // last states of pods that do not exist any more
  std::set<std::string> discarded_, wanted_;
  std::map<std::string, Seconds> avoided_;  // by node, until when
};

}  // namespace hypertune::inline v0::k8s
