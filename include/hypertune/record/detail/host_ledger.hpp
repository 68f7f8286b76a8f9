// HostLedger: from an experiment's records, what each host did for it and how many steps were repeated.
#pragma once

#include <hypertune/detail/visit.hpp>
#include <hypertune/record/detail/host_faults.hpp>
#include <hypertune/record/detail/host_use.hpp>
#include <hypertune/record/record.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

/// Takes each record once, in order. Memory grows with the hosts and the trials that have not ended, not with all
/// trials.
class HostLedger {
 public:
  void add(const Record& record) {
    faults_.apply(record.what);
    detail::visit([&](const auto& event) { take(event, record.time); }, record.what);
    last_ = record.time;
  }

  /// In the order of first appearance. Attempts that have not ended count up to the last record.
  std::vector<HostUse> hosts() const {
    auto all = hosts_;
    for (const auto& [number, host] : departures_) ++all[host].lost;
    for (const auto& [host, since] : present_) all[host].present += std::max(0.0, last_ - since);
    for (const auto& [trial, run] : running_)
      for (const auto host : run.hosts) all[host].busy += std::max(0.0, last_ - run.since);
    const auto suspects = faults_.excluded_hosts([&](const HostFaults::Hosts& without) {
      return std::any_of(hosts_.begin(), hosts_.end(), [&](const HostUse& one) {
        return one.excluded_why.empty() && !gone_.contains(one.host) && !without.contains(one.host);
      });
    });
    for (const auto& suspect : suspects)
      for (auto& one : all)
        if (one.host == suspect.host && one.excluded_why.empty()) one.excluded_why = suspect.why;
    return all;
  }
  std::int64_t repeated_steps() const { return repeated_; }
  /// Whether a host of the trial was lost since the trial started there. If so, the failure is the host's.
  bool on_lost_host(TrialId trial) const { return displaced_.contains(trial); }

 private:
  struct Running {
    std::vector<std::size_t> hosts;  // of each worker
    Seconds since;
  };

  std::size_t host(const std::string& name) {
    for (std::size_t i = 0; i < hosts_.size(); ++i)
      if (hosts_[i].host == name) return i;
    hosts_.push_back({.host = name});
    return hosts_.size() - 1;
  }
  void leave(TrialId trial, Seconds now) {
    if (const auto node = running_.extract(trial))
      for (const auto host : node.mapped().hosts) hosts_[host].busy += std::max(0.0, now - node.mapped().since);
  }
  // Hosts have left while the trial ran. Counts them as lost if that was a loss to the trial.
  void settle(TrialId trial, bool loss) {
    const auto node = left_by_.extract(trial);
    if (!node) return;
    for (const auto number : node.mapped())
      if (const auto departure = departures_.extract(number); departure && loss) ++hosts_[departure.mapped()].lost;
  }
  void close(Seconds now) {
    while (!left_by_.empty()) settle(left_by_.begin()->first, true);
    while (!running_.empty()) leave(running_.begin()->first, now);
    for (const auto& [host, since] : present_) hosts_[host].present += std::max(0.0, now - since);
    present_.clear();
  }

  void take(const record::ExperimentStarted& e, Seconds) {
    close(last_);  // the last driver may have been killed
    if (e.executor != "simulated") faults_.forget();
  }
  void take(const record::ExperimentEnded&, Seconds now) { close(now); }
  void take(const record::HostGained& e, Seconds now) {
    present_.emplace(host(e.host), now);
    gone_.erase(e.host);
  }
  void take(const record::HostLost& e, Seconds now) {
    const std::size_t index = host(e.host);
    gone_.insert(e.host);
    const auto node = present_.extract(index);
    if (node) hosts_[index].present += std::max(0.0, now - node.mapped());
    bool idle = true;
    // A host that leaves because its last trial has ended leaves just before that end is recorded; see settle().
    if (node) ++departure_;
    // The failures of its attempts may be recorded later.
    for (auto run = running_.begin(); run != running_.end();) {
      auto& [hosts, since] = run->second;
      const auto workers = std::erase(hosts, index);
      if (workers > 0) displaced_.insert(run->first);
      if (workers > 0 && node) left_by_[run->first].push_back(departure_);
      idle = idle && workers == 0;
      hosts_[index].busy += static_cast<double>(workers) * std::max(0.0, now - since);
      run = hosts.empty() ? running_.erase(run) : std::next(run);
    }
    if (node && idle) ++hosts_[index].lost;
    if (node && !idle) departures_.emplace(departure_, index);
  }
  void take(const record::TrialStarted& e, Seconds now) {
    leave(e.trial, now);
    displaced_.erase(e.trial);
    Running run{{host(e.host)}, now};
    for (const auto& other : e.others) run.hosts.push_back(host(other.host));
    const std::set<std::size_t> once(run.hosts.begin(), run.hosts.end());
    for (const auto index : once) ++hosts_[index].attempts;
    running_[e.trial] = std::move(run);
    if (const auto node = interrupted_.extract(e.trial)) repeated_ += std::max(0, node.mapped() - e.next_step);
  }
  void take(const record::TrialResized& e, Seconds now) {
    settle(e.trial, true);
    leave(e.trial, now);
    displaced_.erase(e.trial);
    Running run{{}, now};
    for (const auto& worker : e.workers) run.hosts.push_back(host(worker.host));
    running_[e.trial] = std::move(run);
  }
  void take(const record::TrialReported& e, Seconds) { done_[e.trial] = e.step + 1; }
  void take(const record::TrialExploited& e, Seconds) { done_[e.trial] = e.checkpoint.steps; }
  void take(const record::TrialPaused& e, Seconds now) {
    settle(e.trial, false);
    leave(e.trial, now);
  }
  void take(const record::AttemptFailed& e, Seconds now) {
    if (const auto run = running_.find(e.trial);
        run != running_.end() && !run->second.hosts.empty() && e.cause.exclude_host)
      hosts_[run->second.hosts.front()].excluded_why = "a rule excludes it: " + e.cause.text;
    settle(e.trial, e.cause.source != FailureSource::user);
    leave(e.trial, now);
    if (const auto done = done_.find(e.trial); e.retry && done != done_.end()) interrupted_[e.trial] = done->second;
  }
  void take(const record::TrialEnded& e, Seconds now) {
    settle(e.trial, e.cause && e.state == TrialState::failed && e.cause->source != FailureSource::user);
    leave(e.trial, now);
    displaced_.erase(e.trial);
    done_.erase(e.trial);
    interrupted_.erase(e.trial);
  }
  template <class E>
  void take(const E&, Seconds) {}

  std::vector<HostUse> hosts_;
  HostFaults faults_;
  std::set<std::string> gone_;
  std::set<TrialId> displaced_;
  std::map<std::size_t, Seconds> present_;
  std::map<std::uint64_t, std::size_t> departures_;  // host that left while trials ran there, by departure number
  std::unordered_map<TrialId, std::vector<std::uint64_t>> left_by_;  // the departures that each trial has seen
  std::uint64_t departure_ = 0;
  std::unordered_map<TrialId, Running> running_;
  std::unordered_map<TrialId, int> done_;         // steps done, for trials that have not ended
  std::unordered_map<TrialId, int> interrupted_;  // steps done by then, for trials that are to be retried
  std::int64_t repeated_ = 0;
  Seconds last_ = 0;
};

}  // namespace detail
}  // namespace hypertune::inline v0
