// SuccessiveHalving: definitions.
#pragma once

#include <hypertune/schedule/successive_halving.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace hypertune::inline v0 {

void SuccessiveHalving::check() const {
  if (max_steps < grace_period)
    throw OptionError(type, "max_steps",
                      detail::format("is {}, but must be at least grace_period, {}", max_steps, grace_period));
}

void SuccessiveHalving::on_create(TrialId trial) {
  if (rounds_.empty() || rounds_.back().closed) rounds_.emplace_back();
  Round& round = rounds_.back();
  places_[trial] = {.round = rounds_.size() - 1};
  ++round.members;
  ++round.training;
  if (trials > 0 && round.members == static_cast<std::size_t>(trials)) round.closed = true;
}

Decision SuccessiveHalving::on_report(const Progress& progress) {
  const auto found = places_.find(progress.trial);
  if (found == places_.end()) return Decision::stop;
  if (progress.steps >= max_steps) return Decision::complete;
  if (progress.over) return Decision::proceed;  // the round goes on without it, as if it had failed
  Place& place = found->second;
  if (place.waits) return Decision::pause;
  Round& round = rounds_[place.round];
  if (progress.steps < target(round.rung)) return Decision::proceed;
  place.waits = true;
  place.promoted = false;
  round.arrived.push_back({detail::ranked_loss(progress.loss()), progress.trial});
  --round.training;
  halve(round);
  return Decision::pause;
}

void SuccessiveHalving::on_resume(TrialId trial) {
  const auto found = places_.find(trial);
  if (found == places_.end() || !found->second.waits) return;
  Round& round = rounds_[found->second.round];
  if (!round.closed) {  // there are no more trials: close the round with those it has
    round.closed = true;
    halve(round);
  }
  winners_.erase(trial);
  found->second.waits = false;
}

void SuccessiveHalving::on_end(TrialId trial, TrialState) {
  const auto found = places_.find(trial);
  if (found == places_.end()) return;
  const Place place = found->second;
  places_.erase(found);
  winners_.erase(trial);
  losers_.erase(trial);
  verdicts_.erase(trial);
  Round& round = rounds_[place.round];
  if (!place.waits || place.promoted) --round.training;
  std::erase_if(round.arrived, [&](const auto& entry) { return entry.trial == trial; });
  halve(round);
}

Choice SuccessiveHalving::choose_next(const Pool& pool) const {
  if (!losers_.empty()) return Choice::stop(*losers_.begin());
  if (!winners_.empty()) return Choice::resume(*winners_.begin());
  if (pool.more_trials) return Choice::start_new();
  // The last round has fewer trials than it may have: it continues when all of them have arrived.
  if (!rounds_.empty() && !rounds_.back().closed && rounds_.back().training == 0 && !rounds_.back().arrived.empty())
    return Choice::resume(std::min_element(rounds_.back().arrived.begin(), rounds_.back().arrived.end())->trial);
  return Choice::wait();
}

int SuccessiveHalving::target(std::size_t rung) const {
  std::int64_t steps = grace_period;
  for (std::size_t i = 0; i < rung && steps < max_steps; ++i) steps *= reduction_factor;
  return static_cast<int>(std::min<std::int64_t>(steps, max_steps));
}

void SuccessiveHalving::halve(Round& round) {
  if (!round.closed || round.training > 0 || round.arrived.empty()) return;
  auto arrived = std::exchange(round.arrived, {});
  std::sort(arrived.begin(), arrived.end());
  ++round.rung;
  std::size_t quota = round.members;
  for (std::size_t i = 0; i < round.rung; ++i) quota /= static_cast<std::size_t>(reduction_factor);
  quota = std::clamp<std::size_t>(quota, 1, arrived.size());
  const auto finite = static_cast<std::size_t>(
      std::count_if(arrived.begin(), arrived.end(), [](const auto& e) { return e.loss != worst_loss; }));
  if (finite > 0) quota = std::min(quota, finite);
  for (std::size_t i = 0; i < arrived.size(); ++i) {
    (i < quota ? winners_ : losers_).insert(arrived[i].trial);
    if (i >= quota)
      verdicts_[arrived[i].trial] = {.rung = round.rung - 1,
                                     .steps = target(round.rung - 1),
                                     .loss = arrived[i].loss,
                                     .bar = arrived[quota - 1].loss,
                                     .quota = quota,
                                     .trials = arrived.size()};
    places_.at(arrived[i].trial).promoted = i < quota;
  }
  round.training = quota;
}

}  // namespace hypertune::inline v0
