// HostFaults: decides from an experiment's records whether failures are due to the trials or to a host.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/visit.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/trial/trial.hpp>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

/// The description of a worker's failure without the rank of the worker and the number of workers.
inline std::string_view without_rank(std::string_view text) {
  constexpr std::string_view lost = " lost: ", rank = "rank ", ranks = "ranks ";
  if (const auto at = text.find(lost); at != std::string_view::npos && at < text.find(": "))
    text.remove_prefix(at + lost.size());
  const bool several = text.starts_with(ranks);
  const auto numbers = several ? text.find_first_not_of("0123456789, ", ranks.size())
                               : text.find_first_not_of("0123456789", rank.size());
  if (const auto at = text.find(": ");
      (several || text.starts_with(rank)) && at != std::string_view::npos && numbers == at)
    text.remove_prefix(at + 2);
  return text;
}

}  // namespace detail

/// A key that is equal for failures with one cause: how the attempt ended (an exit code, a signal) and the last line of
/// its output, without the parts that differ from trial to trial (paths, numbers).
inline std::string fault_key(const Cause& cause) {
  constexpr std::size_t max_size = 300;
  std::string_view head = detail::without_rank(cause.text), tail;
  head = head.substr(0, head.find(log_ends_with));  // npos: all of it
  if (const auto colon = head.find(": "); colon != std::string_view::npos) {
    tail = head.substr(colon + 2);
    head = head.substr(0, colon);
    if (const auto bar = tail.rfind(" | "); bar != std::string_view::npos) tail.remove_prefix(bar + 3);
  }
  std::string key = to_string(cause.source);
  const auto number = [](std::string_view word) {
    return std::any_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  };
  for (const std::string_view part : {head, tail}) {
    std::string_view before;
    for (std::size_t at = 0; at < part.size() && key.size() < max_size;) {
      const auto begin = part.find_first_not_of(" \t\r\n'\"()[],;=", at);
      if (begin == std::string_view::npos) break;
      at = std::min(part.find_first_of(" \t\r\n'\"()[],;=", begin), part.size());
      const std::string_view word = part.substr(begin, at - begin);
      const bool kept = before == "code" || before == "signal" || before == "status" || before == "Errno";
      key += ' ';
      key += word.find('/') != std::string_view::npos ? "/" : number(word) && !kept ? "#" : word;
      before = word;
    }
    key += ':';
  }
  if (key.size() > max_size) key.resize(max_size);
  return key;
}

/// Counts failures against hosts as well as trials. A host is suspected if too many trials have failed there with one
/// cause, compared with those that ended well (see Limits). It is set aside as long as trials can run on another host
/// where that cause was never seen. So a bug of the trials themselves, which shows on every host, sets no host aside,
/// and the last host is never set aside. A failure is in doubt, and the trial is tried on another host, until enough
/// trials that were tried elsewhere have failed there with the same cause.
///
/// Takes each record once, in order, both live and in a replay; the answers depend only on the records. No I/O, no
/// clock.
class HostFaults {
 public:
  using Hosts = std::set<std::string>;
  struct Limits {
    int same_cause = 3;         ///< failures on a host with one cause, minus trials that ended well: it is a suspect
    int any_cause = 6;          ///< … with any cause, if no other host has seen a failure
    int retries_elsewhere = 2;  ///< further hosts on which a trial is tried
    /// Retries elsewhere that failed alike, minus those that ended well: the cause is the trials.
    int refuting_same_cause = 3;
    int refuting_any_cause = 8;  ///< the same for all causes together
  };
  struct Suspect {
    std::string host, why;
  };

  HostFaults() = default;
  explicit HostFaults(Limits limits) : limits_(limits) {}

  void apply(const record::Any& what) {
    detail::visit([this](const auto& r) { this->take(r); }, what);
  }

  /// Whether a failure that is about to be recorded may be due to the host, so that another host should be tried.
  bool may_be_host_fault(TrialId trial, const Cause& cause) const {
    const auto history = histories_.find(trial);
    if (history != histories_.end() && history->second.doubted >= limits_.retries_elsewhere) return false;
    const auto refuted = [&](const std::string& key, int most) {
      const auto fault = faults_.find(key);
      return fault != faults_.end() && fault->second.confirmed >= fault->second.succeeded_elsewhere + most;
    };
    return !refuted(fault_key(cause), limits_.refuting_same_cause) && !refuted({}, limits_.refuting_any_cause);
  }
  /// The hosts where the trial has failed since it last ended well, and those where any trial failed with its last
  /// cause.
  Hosts avoided(TrialId trial) const {
    const auto history = histories_.find(trial);
    return history == histories_.end() || history->second.failed.empty()
               ? Hosts{}
               : seen(history->second, history->second.failed.back().key);
  }
  /// The same after the failure on `host` is recorded.
  Hosts avoided(TrialId trial, const std::string& host, const Cause& cause) const {
    const auto history = histories_.find(trial);
    Hosts hosts = seen(history == histories_.end() ? FailureHistory{} : history->second, fault_key(cause));
    hosts.insert(host);
    return hosts;
  }
  bool failed_before(TrialId trial) const {
    const auto history = histories_.find(trial);
    return history != histories_.end() && !history->second.failed.empty();
  }
  /// The hosts where the trial itself has failed; with `last`, only the most recent one.
  Hosts failed_on(TrialId trial, bool last = false) const {
    Hosts hosts;
    if (const auto history = histories_.find(trial); history != histories_.end())
      for (const auto& failure : history->second.failed)
        if (!last || &failure == &history->second.failed.back()) hosts.insert(failure.host);
    return hosts;
  }

  /// Changes whenever the result of excluded_hosts() may change.
  std::int64_t version() const { return version_; }
  /// The hosts to set aside, in the order in which they became suspects. `elsewhere(hosts)`: whether trials could run
  /// on a host that is not in `hosts`.
  template <class Elsewhere>
  std::vector<Suspect> excluded_hosts(Elsewhere&& elsewhere) const {
    std::map<std::int64_t, std::pair<const std::string*, const std::string*>> suspects;  // since: cause, host
    for (const auto& [key, fault] : faults_)
      for (const auto& [host, tally] : fault.hosts)
        if (tally.suspect_since > 0) suspects.emplace(tally.suspect_since, std::pair{&key, &host});
    std::vector<Suspect> list;
    Hosts out;
    for (const auto& [since, suspect] : suspects) {
      const auto& [key, host] = suspect;
      if (out.contains(*host)) continue;
      const Fault& fault = faults_.at(*key);
      if (fault.confirmed >=
          fault.succeeded_elsewhere + (key->empty() ? limits_.refuting_any_cause : limits_.refuting_same_cause))
        continue;
      Hosts without = out;
      without.insert(*host);
      for (const auto& [other, tally] : fault.hosts) without.insert(other);
      if (!elsewhere(std::as_const(without))) continue;
      out.insert(*host);
      const Tally& tally = fault.hosts.at(*host);
      const bool workers =
          std::any_of(tally.trials.begin(), tally.trials.end(), [](auto one) { return one.second > 0; });
      list.push_back(
          {*host, detail::format("{} {} failed there{}: {}", tally.trials.size(), workers ? "workers" : "trials",
                                 key->empty() ? ", which none does elsewhere; the last one"
                                              : " with a cause that other hosts do not have",
                                 tally.text)});
    }
    return list;
  }

  /// Forgets all failures. Called when somebody may have repaired the hosts.
  void forget() {
    faults_.clear();
    histories_.clear();
    ++version_;
  }

 private:
  struct Tally {  // one cause on one host
    // Trials that failed with it since the host was last cleared. If a trial went on without the worker that failed,
    // the number is the generation that it formed then, else 0.
    std::set<std::pair<TrialId, std::uint32_t>> trials = {};
    int well = 0;  // trials that ended well in the same time
    std::int64_t suspect_since = 0;
    std::string text = {};
  };
  struct Fault {                         // a cause; the empty key: all causes
    std::map<std::string, Tally> hosts;  // where it was ever seen
    int confirmed = 0;                   // trials that failed with it on another host, too
    int succeeded_elsewhere = 0;         // trials that ended well on another host
    std::int64_t last = 0;
  };
  struct Failure {
    std::string key, host;
  };
  struct FailureHistory {  // of a trial since it last ended well
    std::vector<Failure> failed;
    int doubted = 0;
  };
  struct Run {
    Hosts hosts;           // without those lost since then
    bool one_host = true;  // there was no other one from the start
    std::int64_t began = 0;
  };

  Hosts seen(const FailureHistory& history, const std::string& key) const {
    Hosts hosts;
    for (const auto& failure : history.failed) hosts.insert(failure.host);
    if (const auto fault = faults_.find(key); fault != faults_.end())
      for (const auto& [host, tally] : fault->second.hosts) hosts.insert(host);
    return hosts;
  }

  // `generation`: that of a trial that went on without the worker that failed; 0 if the trial itself has failed.
  void record_failure(const std::string& host, TrialId trial, std::uint32_t generation, const Cause& cause) {
    const auto history = histories_.find(trial);
    for (const auto& [name, limit] :
         {std::pair{fault_key(cause), limits_.same_cause}, std::pair{std::string(), limits_.any_cause}}) {
      Fault& fault = faults_[name];
      fault.last = ++clock_;
      if (generation == 0 && history != histories_.end() &&
          std::any_of(history->second.failed.begin(), history->second.failed.end(), [&](const Failure& failure) {
            return failure.host != host && (name.empty() || failure.key == name);
          }))
        ++fault.confirmed;
      Tally& tally = fault.hosts[host];
      tally.trials.emplace(trial, generation);
      tally.text = cause.text;
      if (tally.suspect_since == 0 && static_cast<int>(tally.trials.size()) - tally.well >= limit)
        tally.suspect_since = clock_;
    }
    bound();
    ++version_;
  }
  void failed(TrialId trial, const std::string& host, const Cause& cause, bool doubted) {
    const std::string key = fault_key(cause);
    FailureHistory& history = histories_[trial];
    history.doubted += doubted;
    record_failure(host, trial, 0, cause);
    std::erase_if(history.failed, [&](const Failure& failure) { return failure.host == host && failure.key == key; });
    history.failed.push_back({key, host});  // the most recent one is last
  }

  void note_success(TrialId trial, const Run& run) {
    if (const auto node = histories_.extract(trial)) {
      Hosts once;  // each cause counts once
      for (const auto& failure : node.mapped().failed)
        if (!run.hosts.contains(failure.host))
          for (const auto& key : {failure.key, std::string()})
            if (const auto fault = faults_.find(key); fault != faults_.end() && once.insert(key).second)
              ++fault->second.succeeded_elsewhere;
      ++version_;
    }
    for (auto& [key, fault] : faults_)
      for (const auto& host : run.hosts) {
        const auto found = fault.hosts.find(host);
        if (found == fault.hosts.end() || found->second.trials.empty()) continue;
        Tally& tally = found->second;
        // An attempt that began before the host became a suspect says nothing about attempts that begin there now.
        if (run.began < tally.suspect_since || ++tally.well < static_cast<int>(tally.trials.size())) continue;
        tally = Tally{};
        ++version_;
      }
  }

  // Limits the memory if the messages are all different.
  void bound() {
    constexpr std::size_t most = 200;
    if (faults_.size() <= most) return;
    auto oldest = faults_.end();
    for (auto it = faults_.begin(); it != faults_.end(); ++it)
      if (!it->first.empty() && (oldest == faults_.end() || it->second.last < oldest->second.last)) oldest = it;
    faults_.erase(oldest);
  }

  void take(const record::TrialStarted& r) {
    Hosts hosts = {r.host};
    for (const auto& place : r.others) hosts.insert(place.host);
    hosts.erase(std::string());
    const bool one_host = hosts.size() == 1;
    if (!hosts.empty()) runs_[r.trial] = {std::move(hosts), one_host, ++clock_};
  }
  void take(const record::TrialResized& r) {
    const auto run = runs_.find(r.trial);
    if (run == runs_.end()) return;
    for (const auto& host : Hosts(r.lost.begin(), r.lost.end()))
      if (run->second.hosts.contains(host))
        record_failure(host, r.trial, r.generation, {.source = FailureSource::infrastructure, .text = r.why});
    run->second = {};
    for (const auto& place : r.workers) run->second.hosts.insert(place.host);
    run->second.one_host = run->second.hosts.size() == 1;
    run->second.began = ++clock_;
  }
  void take(const record::AttemptFailed& r) {
    const auto run = runs_.extract(r.trial);
    if (!run || (r.cause.source == FailureSource::preemption && r.host.empty())) return;
    const Hosts& hosts = run.mapped().hosts;
    // If it ran on several hosts and nobody knows which worker failed, no host is blamed.
    const bool one = run.mapped().one_host && !hosts.empty();
    const std::string host = !r.host.empty() ? r.host : one ? *hosts.begin() : std::string();
    if (!hosts.contains(host)) return;
    if (r.cause.source == FailureSource::preemption)  // a worker was lost; the trial is not blamed
      record_failure(host, r.trial, r.attempt + 1, {.source = FailureSource::infrastructure, .text = r.cause.text});
    else
      failed(r.trial, host, r.cause, r.doubted);
  }
  void take(const record::TrialPaused& r) {
    if (const auto run = runs_.extract(r.trial)) note_success(r.trial, run.mapped());
  }
  void take(const record::TrialEnded& r) {
    const auto run = runs_.extract(r.trial);
    if (run && r.state == TrialState::failed && r.cause) {
      if (const Hosts& hosts = run.mapped().hosts; run.mapped().one_host && !hosts.empty())
        failed(r.trial, *hosts.begin(), *r.cause, false);  // it ended by itself in a way that counts as a failure
    } else if (run)
      note_success(r.trial, run.mapped());
    histories_.erase(r.trial);
  }
  // The attempts there fail because the host is lost; this is not counted against it.
  void take(const record::HostLost& r) {
    for (auto& [trial, run] : runs_) run.hosts.erase(r.host);
  }
  template <class Other>
  void take(const Other&) {}

  Limits limits_;
  std::map<std::string, Fault> faults_;
  std::unordered_map<TrialId, FailureHistory> histories_;  // of trials that have failed and not ended
  std::unordered_map<TrialId, Run> runs_;
  std::int64_t clock_ = 0, version_ = 0;
};

}  // namespace hypertune::inline v0
