// The Dispatcher: slots, launches, changes of workers, and hosts that come and go.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/tune/dispatcher.hpp>

#include <algorithm>
#include <iterator>
#include <numeric>

namespace hypertune::inline v0 {

HYPERTUNE_INLINE std::vector<TrialId> Dispatcher::running_trials() const {
  std::vector<TrialId> trials;
  for (const auto& [trial, run] : live_) trials.push_back(trial);
  std::sort(trials.begin(), trials.end());
  return trials;
}

namespace detail {
inline record::WorkerPlace place_of(const Slot& slot) { return {slot.host_name, slot.cpus, slot.gpus}; }
}  // namespace detail

HYPERTUNE_INLINE void Dispatcher::launch(TrialId trial, Allocation allocation, Outcome& out) {
  auto& state = judge_.state();
  const auto& entry = state.trials()[trial];
  LiveTrial run;
  Launch go;
  if (workers().elastic() && !entry.parked)
    for (const int most = wanted_workers(trial, nullptr).most; allocation.workers() > most;
         allocation.others.pop_back())
      placement_.release(allocation.others.back());
  go.trial = trial;
  go.parked = entry.state == TrialState::paused && entry.parked;
  go.attempt = go.parked ? entry.attempts - 1 : entry.attempts;
  go.point = entry.point;
  go.params = state.space().params(entry.point);
  if (!go.parked || state.exploited(trial))
    go.restore = run.restoring = judge_.hold(trial);  // a parked one may have to be made again from there
  go.next_step = go.parked ? entry.steps : go.restore.empty() ? 0 : go.restore.front().steps;
  const auto* where = state.where(trial);
  allocation.generation = go.parked && where != nullptr ? where->generation : 0;
  go.allocation = allocation;
  go.seed = judge_.seed(trial);
  go.group = workers().several();
  run.next_step = go.next_step;
  record::TrialStarted started{
      trial, go.attempt, go.next_step, allocation.lead.host_name, allocation.lead.cpus, allocation.lead.gpus};
  for (const Slot& slot : allocation.others) started.others.push_back(detail::place_of(slot));
  started.generation = allocation.generation;
  judge_.commit(std::move(started), out);
  state.set_parked(trial, false);
  run.allocation = std::move(allocation);
  live_.insert_or_assign(trial, std::move(run));
  if (away_host(go.allocation) != nullptr)
    hold(trial, std::move(go), out);
  else
    out.commands.push_back(std::move(go));
}

// As an earlier driver had heard from the executor, which says so once more, but only after the first decisions.
HYPERTUNE_INLINE bool Dispatcher::forming(const UnderWay& run) const {
  const Seconds startup = judge_.rules().startup;
  if (run.growths.empty()) return run.forming && run.since + startup >= judge_.now();
  return !run.growths.complete(run.since + (run.forming ? startup : 0), startup);
}
HYPERTUNE_INLINE void Dispatcher::take_over(TrialId trial, Outcome& out) {
  const auto& state = judge_.state();
  const auto& entry = state.trials()[trial];
  const auto* where = state.where(trial);
  const Resources need = judge_.needs(trial);
  std::optional<Allocation> allocation;
  if (where != nullptr) allocation = place_at(*where, need);
  const bool there = allocation.has_value();
  if (!there) allocation = place(need, {});
  if (!allocation) fail(Errc::resources, "there is no room for trial {}, which was running", trial);
  if (where != nullptr) allocation->generation = where->generation;
  Launch go;
  go.trial = trial;
  go.attempt = entry.attempts - 1;
  go.point = entry.point;
  go.params = state.space().params(entry.point);
  go.allocation = *allocation;
  go.seed = judge_.seed(trial);
  go.group = workers().several();
  go.restore = state.restorable(trial);
  go.next_step = entry.reported ? entry.steps : entry.started_at;
  std::erase_if(go.restore, [&](const CheckpointInfo& c) { return c.steps > go.next_step; });
  const auto broken = where == nullptr ? std::nullopt : where->broken;
  go.under_way = UnderWay{broken.value_or(entry.since), entry.reported, broken.has_value()};
  if (there) go.under_way->growths = where->joined;
  LiveTrial run;
  run.allocation = std::move(*allocation);
  run.forming = forming(*go.under_way);
  if (there && (run.forming || (where->trains && state.just_reported() == trial)))
    for (const auto& host : where->leaving)
      if (auto slot = placement_.place_on(host, need)) run.leaving.push_back(std::move(*slot));
  run.elastic = entry.reported || broken;  // as far as its workers have shown it before
  if (where != nullptr) run.growths = where->growths;
  freed_ = true;
  run.next_step = go.next_step;
  live_.insert_or_assign(trial, std::move(run));
  out.commands.push_back(std::move(go));
}

HYPERTUNE_INLINE void Dispatcher::stop(TrialId trial, bool save, Outcome& out) {
  if (held_.contains(trial))  // nothing of it runs
    stopped_.insert(trial);
  else
    out.commands.push_back(Stop{trial, judge_.attempt(trial), save});
}

HYPERTUNE_INLINE LiveTrial Dispatcher::leave(TrialId trial) {
  auto node = live_.extract(trial);
  LiveTrial run = std::move(node.mapped());
  held_.erase(trial);
  stopped_.erase(trial);
  give_back(run.allocation);
  for (const Slot& slot : run.leaving) placement_.release(slot);
  freed_ = true;
  judge_.let_go(run);
  return run;
}

HYPERTUNE_INLINE void Dispatcher::requeue(TrialId trial, const std::string& why, Outcome& out) {
  leave(trial);
  judge_.commit(record::AttemptFailed{trial, judge_.attempt(trial),
                                      Cause{.source = FailureSource::preemption, .text = why}, true},
                out);
  queue_.pending.push_front(trial);
}

// ---- Places

HYPERTUNE_INLINE std::optional<Allocation> Dispatcher::place(const Resources& need, const Placement::Excluded& barred) {
  Allocation allocation;
  if (!workers().several()) {
    auto slot = placement_.place(need, barred);
    if (!slot) return std::nullopt;
    allocation.lead = std::move(*slot);
    return allocation;
  }
  auto slots = placement_.place_all(need, workers(), barred);
  if (slots.empty()) return std::nullopt;
  allocation.lead = std::move(slots.front());
  allocation.others.assign(std::make_move_iterator(slots.begin() + 1), std::make_move_iterator(slots.end()));
  return allocation;
}

HYPERTUNE_INLINE std::optional<Allocation> Dispatcher::find_room(const Resources& need,
                                                                 const Placement::Excluded& barred) {
  if (!away_.empty())
    if (auto allocation = find_present(need, barred)) return allocation;
  return place(need, barred);
}
HYPERTUNE_INLINE std::optional<Allocation> Dispatcher::find_present(const Resources& need,
                                                                    Placement::Excluded elsewhere) {
  for (const auto& [name, away] : away_) elsewhere.insert(name);
  return place(need, elsewhere);
}

// On the very hosts where its workers are.
HYPERTUNE_INLINE std::optional<Allocation> Dispatcher::place_at(const ExperimentState::Whereabouts& where,
                                                                const Resources& need) {
  Allocation allocation;
  auto lead = placement_.place_on(where.host, need);
  if (!lead) return std::nullopt;
  allocation.lead = std::move(*lead);
  for (const auto& host : where.others) {
    auto slot = placement_.place_on(host, need);
    if (!slot) {
      give_back(allocation);
      return std::nullopt;
    }
    allocation.others.push_back(std::move(*slot));
  }
  return allocation;
}

HYPERTUNE_INLINE void Dispatcher::give_back(const Allocation& allocation) {
  for (int rank = 0; rank < allocation.workers(); ++rank) placement_.release(allocation[rank]);
}

HYPERTUNE_INLINE bool Dispatcher::bring_home(TrialId trial, Allocation& allocation, Outcome& out) {
  auto& state = judge_.state();
  const auto& entry = state.trials()[trial];
  const auto* home = state.where(trial);
  if (!entry.parked || home == nullptr) return true;
  bool away = false, there = true, same = home->workers() == allocation.workers();
  for (int rank = 0; rank < home->workers(); ++rank) {
    const std::string& name = (*home)[rank];
    const auto host = placement_.find_host(name);
    away = away || away_.contains(name);
    there = there && host && !placement_.gone(*host) && !barred_.contains(name);
    same = same && name == allocation[rank].host_name;
  }
  if (same && !away) return true;
  give_back(allocation);
  there = there && !away;
  if (auto own = there ? place_at(*home, judge_.needs(trial)) : std::nullopt) {
    allocation = std::move(*own);
    return true;
  }
  const auto saved = state.restorable(trial);
  if (there && (saved.empty() || saved.front().steps != entry.steps)) return false;
  auto elsewhere = find_room(judge_.needs(trial), barred_);
  if (!elsewhere) return false;
  allocation = std::move(*elsewhere);
  out.commands.push_back(Stop{trial, entry.attempts - 1, false});
  state.set_parked(trial, false);
  return true;
}

HYPERTUNE_INLINE std::string Dispatcher::why_no_room(TrialId trial) const {
  const Resources need = judge_.needs(trial);
  const auto barred = barred_for(trial, need);
  const std::string why = why_not(need, barred);
  return barred.size() > barred_.size() && !why.empty() ? "is to be tried on another host than it failed on: " + why
                                                        : why;
}

// ---- Changes of workers

// Those of `ranks` go on, in this order, and `fresh` ones join them.
HYPERTUNE_INLINE void Dispatcher::form(TrialId trial, LiveTrial& run, std::vector<int> ranks, std::vector<Slot> fresh,
                                       const std::string& why, Outcome& out, std::vector<std::string> failed_on) {
  Allocation next = pick(run.allocation, ranks);
  next.generation = run.allocation.generation + 1;
  std::move(fresh.begin(), fresh.end(), std::back_inserter(next.others));
  run.growths += next.workers() > run.allocation.workers() ? 1 : 0;
  run.allocation = std::move(next);
  run.forming = true;
  const Attempt attempt = judge_.attempt(trial);
  record::TrialResized resized{trial, attempt, run.allocation.generation, {}, why, std::move(failed_on)};
  for (int rank = 0; rank < run.allocation.workers(); ++rank)
    resized.workers.push_back(detail::place_of(run.allocation[rank]));
  judge_.commit(std::move(resized), out);
  if (judge_.rules().tell_changes)
    out.notices.push_back(detail::format("trial {} goes on with {} worker{}: {}", trial, run.allocation.workers(),
                                         run.allocation.workers() == 1 ? "" : "s", why));
  ranks.resize(ranks.size() + fresh.size(), -1);
  out.commands.push_back(Resize{trial, attempt, run.allocation, std::move(ranks)});
}
HYPERTUNE_INLINE Allocation Dispatcher::pick(const Allocation& all, const std::vector<int>& ranks) {
  Allocation picked{.generation = all.generation, .lead = all[ranks.front()]};
  for (std::size_t i = 1; i < ranks.size(); ++i) picked.others.push_back(all[ranks[i]]);
  return picked;
}

// Slots for those who join these ranks: near them, or not, as the strategy says.
HYPERTUNE_INLINE std::vector<Slot> Dispatcher::place_beside(TrialId trial, const LiveTrial& run,
                                                            const std::vector<int>& ranks, int least, int most) {
  std::vector<int> beside;
  for (const int rank : ranks)
    if (const int host = run.allocation[rank].host; std::find(beside.begin(), beside.end(), host) == beside.end())
      beside.push_back(host);
  const Resources need = judge_.needs(trial);
  auto barred = barred_for(trial, need);
  for (const auto& [name, away] : away_) barred.insert(name);
  return placement_.place_all(need, {.min = least, .max = most, .strategy = workers().strategy}, barred, beside);
}

HYPERTUNE_INLINE Dispatcher::Wanted Dispatcher::wanted_workers(TrialId trial, const LiveTrial* run) const {
  const auto within = [this](int wanted) { return std::clamp(wanted, workers().min, workers().max); };
  const auto asked = judge_.state().asked_workers(trial);
  if (asked.by_user > 0) return {within(asked.by_user), "it was asked for", true};
  const auto& rules = judge_.rules();
  if (rules.resize) {
    const auto& state = judge_.state();
    const int wanted = rules.resize({.trial = trial,
                                     .workers = run == nullptr ? 0 : run->allocation.workers(),
                                     .steps = state.trials()[trial].steps,
                                     .metrics = run == nullptr ? Metrics() : run->metrics,
                                     .time = state.elapsed_at(judge_.now()),
                                     .running = live_.size() + (run == nullptr ? 1 : 0),
                                     .others_wait = !queue_.pending.empty() || judge_.more_trials()});
    if (wanted > 0) return {within(wanted), "its plan says so"};
  }
  if (asked.by_trial > 0) return {within(asked.by_trial), "the trial wants so many"};
  return {workers().max, "there is room that no other trial waits for"};
}

HYPERTUNE_INLINE bool Dispatcher::worth_restart(TrialId trial, const LiveTrial& run, int most) {
  const int have = run.allocation.workers();
  if (have == most) return false;
  if (have < most) {
    if (const auto before = restarted_.find(trial); before != restarted_.end() && before->second == have) return false;
    std::vector<int> ranks(static_cast<std::size_t>(have));
    std::iota(ranks.begin(), ranks.end(), 0);
    const auto fresh = place_beside(trial, run, ranks, 1, most - have);
    for (const Slot& slot : fresh) placement_.release(slot);
    if (fresh.empty()) return false;
  }
  restarted_.insert_or_assign(trial, have);
  return true;
}

HYPERTUNE_INLINE void Dispatcher::resize(TrialId trial, LiveTrial& run, int wanted, const std::string& why,
                                         Outcome& out) {
  const int have = run.allocation.workers();
  std::vector<int> ranks(static_cast<std::size_t>(std::min(have, wanted)));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<Slot> fresh;
  if (wanted > have) fresh = place_beside(trial, run, ranks, 1, wanted - have);
  for (int rank = wanted; rank < have; ++rank) run.leaving.push_back(run.allocation[rank]);
  if (wanted < have || !fresh.empty()) form(trial, run, std::move(ranks), std::move(fresh), why, out);
}

HYPERTUNE_INLINE bool Dispatcher::replace(TrialId trial, LiveTrial& run, const std::vector<int>& lost,
                                          const std::string& why, bool failed, Outcome& out) {
  std::vector<int> ranks;
  std::vector<std::string> failed_on;
  const int have = run.allocation.workers();
  for (int rank = 0; rank < have; ++rank) {
    if (std::find(lost.begin(), lost.end(), rank) == lost.end()) {
      ranks.push_back(rank);
      continue;
    }
    if (failed) failed_on.push_back(run.allocation[rank].host_name);
    placement_.release(run.allocation[rank]);
  }
  const int left = static_cast<int>(ranks.size());
  if (left >= workers().min) {  // others may join at its next report: nobody waits for them to begin
    form(trial, run, std::move(ranks), {}, why, out, std::move(failed_on));
    return true;
  }
  auto fresh = place_beside(trial, run, ranks, std::max(1, workers().min - left), have - left);
  if (left + static_cast<int>(fresh.size()) < workers().min) {
    if (!failed_on.empty()) run.failed_on = failed_on.front();
    run.allocation = pick(run.allocation, ranks);
    return false;
  }
  form(trial, run, std::move(ranks), std::move(fresh), why, out, std::move(failed_on));
  return true;
}

HYPERTUNE_INLINE bool Dispatcher::room_beside(TrialId trial, const LiveTrial& run, const std::vector<int>& lost) {
  std::vector<int> ranks;
  for (int rank = 0; rank < run.allocation.workers(); ++rank)
    if (std::find(lost.begin(), lost.end(), rank) == lost.end()) ranks.push_back(rank);
  const int missing = workers().min - static_cast<int>(ranks.size());
  if (missing <= 0) return true;
  const auto fresh = place_beside(trial, run, ranks, missing, missing);
  for (const Slot& slot : fresh) placement_.release(slot);
  return !fresh.empty();
}

HYPERTUNE_INLINE void Dispatcher::form_again(TrialId trial, LiveTrial& run, const std::string& why, Outcome& out) {
  std::vector<int> ranks(static_cast<std::size_t>(run.allocation.workers()));
  std::iota(ranks.begin(), ranks.end(), 0);
  form(trial, run, std::move(ranks), {}, why, out);
}

HYPERTUNE_INLINE void Dispatcher::resized(LiveTrial& run) {
  run.forming = false;
  freed_ = true;
  for (const Slot& slot : std::exchange(run.leaving, {})) placement_.release(slot);
}

// ---- Hosts

HYPERTUNE_INLINE void Dispatcher::host_gained(const HostGained& e, Outcome& out) {
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
  part_held(name, out);
  for (const TrialId trial : held_on(name))
    if (!stopped_.contains(trial) && away_host(held_.at(trial).allocation) == nullptr)
      out.commands.push_back(std::move(held_.extract(trial).mapped()));
}

HYPERTUNE_INLINE void Dispatcher::host_lost(const HostLost& e, Outcome& out) {
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
  // Who never was there and is on its way is no loss.
  if (!known && !(first && e.coming)) judge_.commit(record::HostLost{name, e.why, e.for_good}, out);
  if (!away_.contains(name)) let_go(name, detail::format("host '{}' is lost: {}", name, e.why), out);
}

HYPERTUNE_INLINE void Dispatcher::lose_again(const std::map<std::string, bool>& hosts) {
  for (const auto& [name, for_good] : hosts)
    if (const auto host = placement_.find_host(name)) placement_.remove_host(*host, for_good);
}

HYPERTUNE_INLINE void Dispatcher::review_exclusions(Outcome& out) {
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

HYPERTUNE_INLINE Placement::Excluded Dispatcher::barred_for(TrialId trial, const Resources& need) const {
  if (!judge_.faults().failed_before(trial) || placement_.size() < 2) return barred_;
  for (auto barred :
       {judge_.faults().avoided(trial), judge_.faults().failed_on(trial), judge_.faults().failed_on(trial, true)}) {
    barred.insert(barred_.begin(), barred_.end());
    if (placement_.worth_waiting(need, workers(), barred)) return barred;
  }
  return barred_;
}

HYPERTUNE_INLINE bool Dispatcher::in_doubt(TrialId trial, const std::string& host, const Cause& cause) const {
  if (host.empty() || placement_.size() < 2 || !cause.retry || !judge_.faults().doubtful(trial, cause)) return false;
  auto barred = judge_.faults().avoided(trial, host, cause);
  barred.insert(barred_.begin(), barred_.end());
  return placement_.worth_waiting(judge_.needs(trial), workers(), barred);
}

HYPERTUNE_INLINE void Dispatcher::judge_hosts(Outcome& out) {
  if (!hosts_changed_ && judged_ == judge_.faults().version()) return;
  hosts_changed_ = false;
  if (workers().several() && workers().strategy != Strategy::strict_pack && !placement_.network().outside().empty() &&
      !std::exchange(outside_told_, true))
    out.notices.push_back(placement_.network().why() + ": no trial has workers there and on other hosts");
  judged_ = judge_.faults().version();
  const Resources need = judge_.rules().uniform_resources ? judge_.rules().resources({}) : Resources{.cpus = 0};
  const auto suspects = judge_.faults().aside([&](Placement::Excluded hosts) {
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

// The first of its hosts that is.
HYPERTUNE_INLINE const std::string* Dispatcher::away_host(const Allocation& allocation) const {
  if (away_.empty()) return nullptr;
  for (int rank = 0; rank < allocation.workers(); ++rank)
    if (const auto away = away_.find(allocation[rank].host_name); away != away_.end()) return &away->first;
  return nullptr;
}

HYPERTUNE_INLINE void Dispatcher::hold(TrialId trial, Launch go, Outcome& out) {
  const std::string& host = *away_host(go.allocation);
  auto& away = away_.at(host);
  if (!std::exchange(away.told, true))
    out.notices.push_back(detail::format(
        "trial {} waits for host '{}' to come back, as there is no room elsewhere and all is to be decided in order; "
        "at most {:.0f} s",
        trial, host, judge_.rules().host_patience));
  held_.insert_or_assign(trial, std::move(go));
  out.held.push_back(trial);
}

HYPERTUNE_INLINE std::string Dispatcher::why_held(TrialId trial) const {
  const auto found = held_.find(trial);
  const std::string* host = found == held_.end() ? nullptr : away_host(found->second.allocation);
  if (host == nullptr) return {};
  const Away& away = away_.at(*host);
  return detail::format("waits for {}{}{}{}", detail::host_text(*host), away.first ? "" : " to come back",
                        away.why.empty() ? "" : ": ", away.why);
}

HYPERTUNE_INLINE std::vector<TrialId> Dispatcher::take_stopped(bool all) {
  if (all)
    for (const auto& [trial, go] : held_) stopped_.insert(trial);
  const auto trials = std::exchange(stopped_, {});
  return {trials.begin(), trials.end()};
}

HYPERTUNE_INLINE void Dispatcher::move_held(Outcome& out) {
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

HYPERTUNE_INLINE std::vector<TrialId> Dispatcher::held_on(const std::string& host) const {
  std::vector<TrialId> trials;
  for (const auto& [trial, go] : held_)
    if (go.allocation.uses_host(host)) trials.push_back(trial);
  return trials;
}

// Now that the host has said where it is: who was to have workers there and on others that it does not reach.
HYPERTUNE_INLINE void Dispatcher::part_held(const std::string& host, Outcome& out) {
  const auto trials = held_on(host);
  for (auto trial = trials.rbegin(); trial != trials.rend(); ++trial)
    if (!stopped_.contains(*trial) && !placement_.network().joins(held_.at(*trial).allocation))
      requeue(*trial, placement_.network().why(), out);
}

HYPERTUNE_INLINE void Dispatcher::let_go(const std::string& host, const std::string& why, Outcome& out) {
  const auto trials = held_on(host);
  for (auto trial = trials.rbegin(); trial != trials.rend(); ++trial) requeue(*trial, why, out);  // the first one first
}

HYPERTUNE_INLINE std::optional<Seconds> Dispatcher::next_give_up() const {
  std::optional<Seconds> at;
  for (const auto& [name, away] : away_)
    if (!held_on(name).empty())
      at = std::min(at.value_or(away.since + judge_.rules().host_patience), away.since + judge_.rules().host_patience);
  return at;
}

HYPERTUNE_INLINE void Dispatcher::give_up_hosts(Outcome& out) {
  for (auto at = away_.begin(); at != away_.end();) {
    const auto name = at->first;
    if (judge_.now() < at->second.since + judge_.rules().host_patience || held_on(name).empty()) {
      ++at;
      continue;
    }
    const bool first = at->second.first;
    const std::string reason = at->second.why.empty() ? "" : " (" + at->second.why + ")";
    const std::string why =
        first ? detail::format("{} is not there after {:.0f} s{}", detail::host_text(name),
                               judge_.rules().host_patience, reason)
              : detail::format("host '{}' has not come back within {:.0f} s", name, judge_.rules().host_patience);
    at = away_.erase(at);
    out.notices.push_back(why + ": the run goes on without it, and may decide otherwise than it would have");
    if (const auto host = placement_.find_host(name)) placement_.remove_host(*host, false, why);
    let_go(name, why, out);
  }
}

}  // namespace hypertune::inline v0
