// The Dispatcher: changes of workers.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/tune/detail/dispatcher.hpp>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace hypertune::inline v0 {

// Forms a new generation of the workers `ranks`, in this order, and new workers on the slots `fresh`.
void Dispatcher::form(TrialId trial, LiveTrial& run, std::vector<int> ranks, std::vector<Slot> fresh,
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
Allocation Dispatcher::pick(const Allocation& all, const std::vector<int>& ranks) {
  Allocation picked{.generation = all.generation, .lead = all[ranks.front()]};
  for (std::size_t i = 1; i < ranks.size(); ++i) picked.others.push_back(all[ranks[i]]);
  return picked;
}

// Slots for workers that join those of `ranks`, near them or not, depending on the strategy.
std::vector<Slot> Dispatcher::place_beside(TrialId trial, const LiveTrial& run, const std::vector<int>& ranks,
                                           int least, int most) {
  std::vector<int> beside;
  for (const int rank : ranks)
    if (const int host = run.allocation[rank].host; std::find(beside.begin(), beside.end(), host) == beside.end())
      beside.push_back(host);
  const Resources need = judge_.needs(trial);
  auto barred = barred_for(trial, need);
  for (const auto& [name, away] : away_) barred.insert(name);
  return placement_.place_all(need, {.min = least, .max = most, .strategy = workers().strategy}, barred, beside);
}

Dispatcher::Wanted Dispatcher::wanted_workers(TrialId trial, const LiveTrial* run) const {
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

bool Dispatcher::worth_restart(TrialId trial, const LiveTrial& run, int most) {
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

void Dispatcher::resize(TrialId trial, LiveTrial& run, int wanted, const std::string& why, Outcome& out) {
  const int have = run.allocation.workers();
  std::vector<int> ranks(static_cast<std::size_t>(std::min(have, wanted)));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<Slot> fresh;
  if (wanted > have) fresh = place_beside(trial, run, ranks, 1, wanted - have);
  for (int rank = wanted; rank < have; ++rank) run.leaving.push_back(run.allocation[rank]);
  if (wanted < have || !fresh.empty()) form(trial, run, std::move(ranks), std::move(fresh), why, out);
}

bool Dispatcher::replace(TrialId trial, LiveTrial& run, const std::vector<int>& lost, const std::vector<int>& starting,
                         std::string why, bool failed, Outcome& out) {
  std::vector<int> ranks, unready;
  std::vector<std::string> failed_on;
  const int have = run.allocation.workers();
  for (int rank = 0; rank < have; ++rank) {
    if (std::find(lost.begin(), lost.end(), rank) == lost.end()) {
      (std::find(starting.begin(), starting.end(), rank) == starting.end() ? ranks : unready).push_back(rank);
      continue;
    }
    if (failed) failed_on.push_back(run.allocation[rank].host_name);
    placement_.release(run.allocation[rank]);
  }
  // The others would stand still until these are ready. Others may join them later.
  const bool enough = !ranks.empty() && static_cast<int>(ranks.size()) >= workers().min;
  if (enough && !unready.empty()) {
    for (const int rank : unready) run.leaving.push_back(run.allocation[rank]);
    why += detail::format("{}{} new worker{} not ready and {} not waited for", why.empty() ? "" : "; ", unready.size(),
                          unready.size() == 1 ? " was" : "s were", unready.size() == 1 ? "is" : "are");
  } else {
    ranks.insert(ranks.end(), unready.begin(), unready.end());
    std::sort(ranks.begin(), ranks.end());
  }
  const int left = static_cast<int>(ranks.size());
  if (left >= workers().min) {  // more may join at the next report; the others do not wait for them to start
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

bool Dispatcher::room_beside(TrialId trial, const LiveTrial& run, const std::vector<int>& lost) {
  std::vector<int> ranks;
  for (int rank = 0; rank < run.allocation.workers(); ++rank)
    if (std::find(lost.begin(), lost.end(), rank) == lost.end()) ranks.push_back(rank);
  const int missing = workers().min - static_cast<int>(ranks.size());
  if (missing <= 0) return true;
  const auto fresh = place_beside(trial, run, ranks, missing, missing);
  for (const Slot& slot : fresh) placement_.release(slot);
  return !fresh.empty();
}

void Dispatcher::form_again(TrialId trial, LiveTrial& run, const std::string& why, Outcome& out) {
  std::vector<int> ranks(static_cast<std::size_t>(run.allocation.workers()));
  std::iota(ranks.begin(), ranks.end(), 0);
  form(trial, run, std::move(ranks), {}, why, out);
}

std::optional<Seconds> Dispatcher::next_growth() const {
  std::optional<Seconds> at;
  for (const auto& [run, until] : not_before_) at = std::min(at.value_or(until), until);
  return at;
}

void Dispatcher::resized(LiveTrial& run) {
  run.forming = false;
  freed_ = true;
  for (const Slot& slot : std::exchange(run.leaving, {})) placement_.release(slot);
}

}  // namespace hypertune::inline v0
