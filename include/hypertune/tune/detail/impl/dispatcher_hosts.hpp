// The Dispatcher: hosts that appear and are lost.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/tune/detail/dispatcher.hpp>

#include <algorithm>
#include <utility>

namespace hypertune::inline v0 {

void Dispatcher::host_gained(const HostGained& e, Outcome& out) {
  const auto host = static_cast<std::size_t>(e.host);
  const bool joins = e.what && host == placement_.size();
  if (joins) placement_.add_host(*e.what);
  if (e.host < 0 || host >= placement_.size()) return;
  const std::string name = placement_.host_name(e.host);
  const bool back = away_.erase(name) > 0;
  const bool news = joins || back || placement_.gone(e.host) || (e.what && !gained_.contains(e.host));
  if (e.what && !joins) {
    placement_.describe_host(e.host, e.what->total);
    placement_.locate_host(e.host, e.what->addresses);
  }
  if (placement_.gone(e.host)) placement_.restore_host(e.host);
  if (e.what) gained_.insert(e.host);
  hosts_changed_ = true;
  freed_ = true;
  if (news) judge_.commit(record::HostGained{name}, out);
  requeue_unreachable(name, out);
  for (const TrialId trial : held_on(name))
    if (!stopped_.contains(trial) && away_host(held_.at(trial).allocation) == nullptr)
      out.commands.push_back(std::move(held_.extract(trial).mapped()));
}

void Dispatcher::host_lost(const HostLost& e, Outcome& out) {
  if (e.host < 0 || static_cast<std::size_t>(e.host) >= placement_.size()) return;
  const std::string name = placement_.host_name(e.host);
  const bool waited_for = away_.contains(name);
  const bool first = placement_.awaited(e.host);  // it was never there
  const bool known = (placement_.gone(e.host) && !first) || waited_for;
  hosts_changed_ = true;
  if (judge_.rules().ordered && !e.for_good && !e.removed && !first && (waited_for || !known)) {
    away_.try_emplace(name, Away{.since = judge_.now(), .told = e.coming}).first->second.why = e.why;
  } else {
    away_.erase(name);
    placement_.remove_host(e.host, e.for_good, e.why, e.removed);
  }
  // A host that was never there and is still coming is not lost.
  if (!known && !(first && e.coming)) judge_.commit(record::HostLost{name, e.why, e.for_good}, out);
  if (!away_.contains(name)) requeue_held(name, detail::format("host '{}' is lost: {}", name, e.why), out);
}

void Dispatcher::mark_hosts_lost(const std::map<std::string, bool>& hosts) {
  for (const auto& [name, for_good] : hosts)
    if (const auto host = placement_.find_host(name)) placement_.remove_host(*host, for_good);
}

void Dispatcher::review_exclusions(Outcome& out) {
  const auto& excluded = judge_.excluded();
  if (excluded.empty()) return;
  std::string names;
  for (const auto& name : excluded) names += (names.empty() ? "" : ", ") + name;
  const Resources need = judge_.rules().uniform_resources ? judge_.rules().resources({}) : Resources{};
  if (possible(need, {}) && !possible(need, excluded)) {
    judge_.exclude_none();
    out.notices.push_back("used again, as no host would be left: " + names);
  } else {
    out.notices.push_back("not used, as a failure there has excluded them: " + names);
  }
}

Placement::Excluded Dispatcher::barred_for(TrialId trial, const Resources& need) const {
  if (!judge_.faults().failed_before(trial) || placement_.size() < 2) return barred_;
  for (auto barred :
       {judge_.faults().avoided(trial), judge_.faults().failed_on(trial), judge_.faults().failed_on(trial, true)}) {
    barred.insert(barred_.begin(), barred_.end());
    if (placement_.worth_waiting(need, workers(), barred)) return barred;
  }
  return barred_;
}

bool Dispatcher::in_doubt(TrialId trial, const std::string& host, const Cause& cause) const {
  if (host.empty() || placement_.size() < 2 || !cause.retry || !judge_.faults().may_be_host_fault(trial, cause))
    return false;
  auto barred = judge_.faults().avoided(trial, host, cause);
  barred.insert(barred_.begin(), barred_.end());
  return placement_.worth_waiting(judge_.needs(trial), workers(), barred);
}

void Dispatcher::judge_hosts(Outcome& out) {
  if (!hosts_changed_ && judged_ == judge_.faults().version()) return;
  hosts_changed_ = false;
  if (workers().several() && workers().strategy != Strategy::strict_pack && !placement_.network().outside().empty() &&
      !std::exchange(outside_told_, true))
    out.notices.push_back(placement_.network().why() + ": no trial has workers there and on other hosts");
  judged_ = judge_.faults().version();
  const Resources need = judge_.rules().uniform_resources ? judge_.rules().resources({}) : Resources{.cpus = 0};
  const auto suspects = judge_.faults().excluded_hosts([&](Placement::Excluded hosts) {
    hosts.insert(judge_.excluded().begin(), judge_.excluded().end());
    return placement_.worth_waiting(need, workers(), hosts);
  });
  barred_ = judge_.excluded();
  std::set<std::string> before = std::exchange(aside_, {});
  for (const auto& suspect : suspects) {
    barred_.insert(suspect.host);
    aside_.insert(suspect.host);
    if (before.erase(suspect.host) == 0 && !judge_.excluded().contains(suspect.host))
      out.notices.push_back(detail::format("host {} is set aside: {}", suspect.host, suspect.why));
  }
  for (const auto& host : before)
    out.notices.push_back(
        detail::format("host {} is used again: what was laid against it is no better elsewhere", host));
}

// ---- Hosts that are waited for

// The first host of `allocation` that is away; nullptr if none is.
const std::string* Dispatcher::away_host(const Allocation& allocation) const {
  if (away_.empty()) return nullptr;
  for (int rank = 0; rank < allocation.workers(); ++rank)
    if (const auto away = away_.find(allocation[rank].host_name); away != away_.end()) return &away->first;
  return nullptr;
}

void Dispatcher::hold(TrialId trial, Launch go, Outcome& out) {
  const std::string& host = *away_host(go.allocation);
  auto& away = away_.at(host);
  if (!std::exchange(away.told, true))
    out.notices.push_back(detail::format(
        "trial {} waits for host '{}' to come back, as there is no room elsewhere and all is to be decided in order; "
        "at most {:.0f} s",
        trial, host, judge_.rules().host_timeout));
  held_.insert_or_assign(trial, std::move(go));
  out.held.push_back(trial);
}

std::string Dispatcher::why_held(TrialId trial) const {
  const auto found = held_.find(trial);
  const std::string* host = found == held_.end() ? nullptr : away_host(found->second.allocation);
  if (host == nullptr) return {};
  const Away& away = away_.at(*host);
  return detail::format("waits for {}{}{}{}", detail::host_text(*host), away.first ? "" : " to come back",
                        away.why.empty() ? "" : ": ", away.why);
}

std::vector<TrialId> Dispatcher::take_stopped(bool all) {
  if (all)
    for (const auto& [trial, go] : held_) stopped_.insert(trial);
  const auto trials = std::exchange(stopped_, {});
  return {trials.begin(), trials.end()};
}

void Dispatcher::move_held(Outcome& out) {
  std::vector<TrialId> trials;
  for (const auto& [trial, go] : held_) trials.push_back(trial);
  for (const TrialId trial : trials) {
    const Resources need = judge_.needs(trial);
    auto allocation = find_present(need, barred_for(trial, need));
    if (!allocation) continue;
    requeue(trial, "its host has not come back yet, and there is room elsewhere", out);
    queue_.erase(trial);
    launch(trial, std::move(*allocation), out);
  }
}

std::vector<TrialId> Dispatcher::held_on(const std::string& host) const {
  std::vector<TrialId> trials;
  for (const auto& [trial, go] : held_)
    if (go.allocation.uses_host(host)) trials.push_back(trial);
  return trials;
}

// The host's addresses are known now: requeues trials that wait for it and were to have workers on hosts that it cannot
// reach.
void Dispatcher::requeue_unreachable(const std::string& host, Outcome& out) {
  const auto trials = held_on(host);
  for (auto trial = trials.rbegin(); trial != trials.rend(); ++trial)
    if (!stopped_.contains(*trial) && !placement_.network().joins(held_.at(*trial).allocation))
      requeue(*trial, placement_.network().why(), out);
}

void Dispatcher::requeue_held(const std::string& host, const std::string& why, Outcome& out) {
  const auto trials = held_on(host);
  for (auto trial = trials.rbegin(); trial != trials.rend(); ++trial) requeue(*trial, why, out);  // keeps the order
}

std::optional<Seconds> Dispatcher::next_give_up() const {
  std::optional<Seconds> at;
  for (const auto& [name, away] : away_)
    if (!held_on(name).empty())
      at = std::min(at.value_or(away.since + judge_.rules().host_timeout), away.since + judge_.rules().host_timeout);
  return at;
}

void Dispatcher::give_up_hosts(Outcome& out) {
  for (auto at = away_.begin(); at != away_.end();) {
    const auto name = at->first;
    if (judge_.now() < at->second.since + judge_.rules().host_timeout || held_on(name).empty()) {
      ++at;
      continue;
    }
    const bool first = at->second.first;
    const std::string reason = at->second.why.empty() ? "" : " (" + at->second.why + ")";
    const std::string why =
        first ? detail::format("{} is not there after {:.0f} s{}", detail::host_text(name), judge_.rules().host_timeout,
                               reason)
              : detail::format("host '{}' has not come back within {:.0f} s", name, judge_.rules().host_timeout);
    at = away_.erase(at);
    out.notices.push_back(why + ": the run goes on without it, and may decide otherwise than it would have");
    if (const auto host = placement_.find_host(name)) placement_.remove_host(*host, false, why);
    requeue_held(name, why, out);
  }
}

}  // namespace hypertune::inline v0
