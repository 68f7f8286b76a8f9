// SuccessiveHalving: definitions.
#pragma once

#include <hypertune/schedule/detail/rung.hpp>
#include <hypertune/schedule/successive_halving.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

struct SuccessiveHalvingState {
  struct Round {
    std::size_t rung = 0, members = 0, training = 0;  // `training`: those that have not reached the rung yet
    bool closed = false;                              // gets no more trials
    std::vector<RungEntry> arrived{};
  };
  struct Place {
    std::size_t round = 0;
    bool waits = false, promoted = false;
  };
  std::vector<Round> rounds{};
  std::unordered_map<TrialId, Place> places{};
  std::set<TrialId> winners{}, losers{};                // to be resumed, to be stopped
  std::unordered_map<TrialId, RungVerdict> verdicts{};  // of the losers
};

/// The steps of a rung.
int target(std::size_t rung, const SuccessiveHalving& options) {
  std::int64_t steps = options.grace_period;
  for (std::size_t i = 0; i < rung && steps < options.max_steps; ++i) steps *= options.reduction_factor;
  return static_cast<int>(std::min<std::int64_t>(steps, options.max_steps));
}

/// Once all trials of a closed round have arrived, the best of them go on.
void halve(SuccessiveHalvingState& state, SuccessiveHalvingState::Round& round, const SuccessiveHalving& options) {
  if (!round.closed || round.training > 0 || round.arrived.empty()) return;
  auto arrived = std::exchange(round.arrived, {});
  std::sort(arrived.begin(), arrived.end());
  ++round.rung;
  std::size_t quota = round.members;
  for (std::size_t i = 0; i < round.rung; ++i) quota /= static_cast<std::size_t>(options.reduction_factor);
  quota = std::clamp<std::size_t>(quota, 1, arrived.size());
  const auto finite = static_cast<std::size_t>(
      std::count_if(arrived.begin(), arrived.end(), [](const auto& e) { return e.loss != worst_loss; }));
  if (finite > 0) quota = std::min(quota, finite);
  for (std::size_t i = 0; i < arrived.size(); ++i) {
    (i < quota ? state.winners : state.losers).insert(arrived[i].trial);
    if (i >= quota)
      state.verdicts[arrived[i].trial] = {.rung = round.rung - 1,
                                          .steps = target(round.rung - 1, options),
                                          .loss = arrived[i].loss,
                                          .bar = arrived[quota - 1].loss,
                                          .quota = quota,
                                          .trials = arrived.size()};
    state.places.at(arrived[i].trial).promoted = i < quota;
  }
  round.training = quota;
}

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

void SuccessiveHalving::check() const {
  if (max_steps < grace_period)
    throw OptionError(type, "max_steps",
                      detail::format("is {}, but must be at least grace_period, {}", max_steps, grace_period));
}

void SuccessiveHalving::on_create(TrialId trial) {
  auto& state = state_.made();
  if (state.rounds.empty() || state.rounds.back().closed) state.rounds.emplace_back();
  auto& round = state.rounds.back();
  state.places[trial] = {.round = state.rounds.size() - 1};
  ++round.members;
  ++round.training;
  if (trials > 0 && round.members == static_cast<std::size_t>(trials)) round.closed = true;
}

Decision SuccessiveHalving::on_report(const Progress& progress) {
  auto& state = state_.made();
  const auto found = state.places.find(progress.trial);
  if (found == state.places.end()) return Decision::stop;
  if (progress.steps >= max_steps) return Decision::complete;
  if (progress.over) return Decision::proceed;  // the round goes on without it, as if it had failed
  auto& place = found->second;
  if (place.waits) return Decision::pause;
  auto& round = state.rounds[place.round];
  if (progress.steps < detail::target(round.rung, *this)) return Decision::proceed;
  place.waits = true;
  place.promoted = false;
  round.arrived.push_back({detail::ranked_loss(progress.loss()), progress.trial});
  --round.training;
  detail::halve(state, round, *this);
  return Decision::pause;
}

void SuccessiveHalving::on_resume(TrialId trial) {
  auto& state = state_.made();
  const auto found = state.places.find(trial);
  if (found == state.places.end() || !found->second.waits) return;
  auto& round = state.rounds[found->second.round];
  if (!round.closed) {  // there are no more trials: close the round with those it has
    round.closed = true;
    detail::halve(state, round, *this);
  }
  state.winners.erase(trial);
  found->second.waits = false;
}

void SuccessiveHalving::on_end(TrialId trial, TrialState) {
  auto& state = state_.made();
  const auto found = state.places.find(trial);
  if (found == state.places.end()) return;
  const auto place = found->second;
  state.places.erase(found);
  state.winners.erase(trial);
  state.losers.erase(trial);
  state.verdicts.erase(trial);
  auto& round = state.rounds[place.round];
  if (!place.waits || place.promoted) --round.training;
  std::erase_if(round.arrived, [&](const auto& entry) { return entry.trial == trial; });
  detail::halve(state, round, *this);
}

Choice SuccessiveHalving::choose_next(const Pool& pool) const {
  const auto& state = state_.or_default();
  if (!state.losers.empty()) return Choice::stop(*state.losers.begin());
  if (!state.winners.empty()) return Choice::resume(*state.winners.begin());
  if (pool.more_trials) return Choice::start_new();
  // The last round has fewer trials than it may have: it continues when all of them have arrived.
  if (!state.rounds.empty() && !state.rounds.back().closed && state.rounds.back().training == 0 &&
      !state.rounds.back().arrived.empty())
    return Choice::resume(
        std::min_element(state.rounds.back().arrived.begin(), state.rounds.back().arrived.end())->trial);
  return Choice::wait();
}

std::string SuccessiveHalving::why(TrialId trial, const LossText& losses) const {
  const auto& state = state_.or_default();
  const auto found = state.verdicts.find(trial);
  return found == state.verdicts.end() ? "" : found->second.text(losses);
}

}  // namespace hypertune::inline v0
