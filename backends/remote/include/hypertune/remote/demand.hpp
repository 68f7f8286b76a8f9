// DemandTracker: computes what an experiment needs from the commands and events of its executor.
#pragma once

#include <hypertune/execute/executor.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0::remote {

/// A number of trials with the same needs.
struct TrialShape {
  Resources needs;
  int count = 1;
};

/// The demand of a queue: the needs of waiting trials, and what runs on each host, by the host's name.
struct HostDemand {
  std::vector<TrialShape> pending;
  std::map<std::string, std::vector<Resources>> running;
};

/// Counts for an experiment whose trials all have the same needs and number of workers. Trials that were never launched
/// count as waiting, and so do those that failed and were not launched again, until trial_ended(). Paused trials do
/// not, because they may never continue; but if there is nothing else, they need one place, so that the scheduler that
/// chooses among them has a host. Thread-safe.
class DemandTracker {
 public:
  /// `trials`: total number of trials (samples). `concurrency`: maximum number that run at once; 0: unlimited.
  DemandTracker(Resources needs, int trials, int concurrency = 0, int workers = 1)
      : needs_(std::move(needs)), trials_(trials), concurrency_(concurrency), workers_(workers) {}
  /// If the number of trials is not given, there is always one more.
  explicit DemandTracker(const Workload& workload)
      : DemandTracker(workload.each, bounded(workload.trials.value_or(0), max_places),
                      bounded(workload.concurrency, 10'000), workload.workers) {}

  void performed(const Command& command) {
    const auto* launch = std::get_if<Launch>(&command);
    const auto* resize = std::get_if<Resize>(&command);
    if (launch == nullptr && resize == nullptr) return;
    const std::lock_guard lock(mutex_);
    if (resize != nullptr) {
      if (const auto run = running_.find(resize->trial); run != running_.end())
        run->second = places_of(resize->allocation);
      return;
    }
    seen_.insert(launch->trial);
    failed_.erase(launch->trial);
    paused_.erase(launch->trial);
    running_[launch->trial] = places_of(launch->allocation);
  }
  void happened(const Event& event) {
    const std::lock_guard lock(mutex_);
    if (const auto* paused = std::get_if<Paused>(&event)) {
      running_.erase(paused->trial);
      paused_.insert(paused->trial);
    }
    if (const auto* finished = std::get_if<Finished>(&event)) running_.erase(finished->trial);
    if (const auto* stopped = std::get_if<Stopped>(&event)) running_.erase(stopped->trial);
    if (const auto* failed = std::get_if<Failed>(&event)) {
      running_.erase(failed->trial);
      if (!ended_trials_.contains(failed->trial)) failed_.insert(failed->trial);
    }
  }
  /// The trial has ended for good, with any result (record::TrialEnded).
  void trial_ended(TrialId trial) {
    const std::lock_guard lock(mutex_);
    seen_.insert(trial);
    ended_trials_.insert(trial);
    failed_.erase(trial);
    paused_.erase(trial);
  }
  /// The host has ended, and another one may get its name. Parts of a trial that still run, such as the other workers
  /// of a group, run on other hosts.
  void host_ended(const std::string& name) {
    const std::lock_guard lock(mutex_);
    for (auto& [trial, places] : running_)
      std::erase_if(places, [&](const Place& place) { return place.first == name; });
  }
  /// The experiment has ended: nothing waits any more.
  void ended() {
    const std::lock_guard lock(mutex_);
    trials_ = 0;
    failed_.clear();
    paused_.clear();
    running_.clear();
  }
  HostDemand demand() const {
    const std::lock_guard lock(mutex_);
    HostDemand demand;
    for (const auto& [trial, places] : running_)
      for (const auto& [host, resources] : places) demand.running[host].push_back(resources);
    int waiting = std::max(0, trials_ - static_cast<int>(seen_.size())) + static_cast<int>(failed_.size());
    if (concurrency_ > 0) waiting = std::min(waiting, std::max(0, concurrency_ - static_cast<int>(running_.size())));
    if (waiting == 0 && running_.empty() && !paused_.empty()) waiting = 1;
    const auto places = static_cast<std::int64_t>(waiting) * workers_;
    if (places > 0) demand.pending.push_back({needs_, static_cast<int>(std::min<std::int64_t>(places, max_places))});
    return demand;
  }

 private:
  static constexpr std::int64_t max_places = std::numeric_limits<int>::max() / 2;
  static int bounded(std::int64_t count, std::int64_t otherwise) {
    return static_cast<int>(count > 0 ? std::min(count, max_places) : otherwise);
  }
  using Place = std::pair<std::string, Resources>;  // a host's name, and the resources held there

  static std::vector<Place> places_of(const Allocation& allocation) {
    std::vector<Place> places;
    for (int rank = 0; rank < allocation.workers(); ++rank)
      places.emplace_back(allocation[rank].host_name, allocation[rank].resources);
    return places;
  }

  mutable std::mutex mutex_;
  Resources needs_;
  int trials_, concurrency_, workers_;
  std::set<TrialId> seen_, failed_, paused_, ended_trials_;
  std::map<TrialId, std::vector<Place>> running_;
};

}  // namespace hypertune::inline v0::remote
