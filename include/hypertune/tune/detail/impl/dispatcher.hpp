// The Dispatcher: launches and allocations.
#pragma once

#include <hypertune/tune/detail/dispatcher.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace hypertune::inline v0 {

std::vector<TrialId> Dispatcher::running_trials() const {
  std::vector<TrialId> trials;
  for (const auto& [trial, run] : live_) trials.push_back(trial);
  std::sort(trials.begin(), trials.end());
  return trials;
}

void Dispatcher::launch(TrialId trial, Allocation allocation, Outcome& out) {
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
    go.restore = run.restoring = judge_.pin_restorable(trial);  // a parked run may have to be rebuilt from a checkpoint
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

// Whether the run's newest generation was still forming, as an earlier driver knew. The executor reports it again, but
// only after the first decisions.
bool Dispatcher::forming(const UnderWay& run) const {
  const Seconds startup = judge_.rules().startup;
  if (run.growths.empty()) return run.forming && run.since + startup >= judge_.now();
  return !run.growths.complete(run.since + (run.forming ? startup : 0), startup);
}
void Dispatcher::take_over(TrialId trial, Outcome& out) {
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
  run.elastic = entry.reported || broken;  // as far as its workers have shown that before
  if (where != nullptr) run.growths = where->growths;
  freed_ = true;
  run.next_step = go.next_step;
  live_.insert_or_assign(trial, std::move(run));
  out.commands.push_back(std::move(go));
}

void Dispatcher::stop(TrialId trial, bool save, Outcome& out) {
  if (held_.contains(trial))  // no process of it runs
    stopped_.insert(trial);
  else
    out.commands.push_back(Stop{trial, judge_.attempt(trial), save});
}

LiveTrial Dispatcher::leave(TrialId trial) {
  auto node = live_.extract(trial);
  LiveTrial run = std::move(node.mapped());
  held_.erase(trial);
  stopped_.erase(trial);
  give_back(run.allocation);
  for (const Slot& slot : run.leaving) placement_.release(slot);
  freed_ = true;
  judge_.unpin_restorable(run);
  return run;
}

void Dispatcher::requeue(TrialId trial, const std::string& why, Outcome& out) {
  leave(trial);
  judge_.commit(record::AttemptFailed{trial, judge_.attempt(trial),
                                      Cause{.source = FailureSource::preemption, .text = why}, true},
                out);
  queue_.pending.push_front(trial);
}

// ---- Places

std::optional<Allocation> Dispatcher::place(const Resources& need, const Placement::Excluded& barred) {
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

std::optional<Allocation> Dispatcher::find_room(const Resources& need, const Placement::Excluded& barred) {
  if (!away_.empty())
    if (auto allocation = find_present(need, barred)) return allocation;
  return place(need, barred);
}
std::optional<Allocation> Dispatcher::find_present(const Resources& need, Placement::Excluded elsewhere) {
  for (const auto& [name, away] : away_) elsewhere.insert(name);
  return place(need, elsewhere);
}

// Slots on exactly the hosts where the workers are.
std::optional<Allocation> Dispatcher::place_at(const ExperimentState::Whereabouts& where, const Resources& need) {
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

void Dispatcher::give_back(const Allocation& allocation) {
  for (int rank = 0; rank < allocation.workers(); ++rank) placement_.release(allocation[rank]);
}

bool Dispatcher::place_parked(TrialId trial, Allocation& allocation, Outcome& out) {
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

std::string Dispatcher::why_no_room(TrialId trial) const {
  const Resources need = judge_.needs(trial);
  const auto barred = barred_for(trial, need);
  const std::string why = why_not(need, barred);
  return barred.size() > barred_.size() && !why.empty() ? "is to be tried on another host than it failed on: " + why
                                                        : why;
}

}  // namespace hypertune::inline v0
