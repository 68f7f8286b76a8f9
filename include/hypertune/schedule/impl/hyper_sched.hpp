// HyperSched: definitions.
#pragma once

#include <hypertune/schedule/detail/rung.hpp>
#include <hypertune/schedule/hyper_sched.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace hypertune::inline v0::detail {

struct HyperSchedState {
  struct Trial {
    int steps = 0;
    std::int64_t target = 0;  // steps of the rung that it trains towards, or pauses at
    double loss = worst_loss;
    bool paused = false;
    Seconds elapsed = 0;
  };
  std::map<TrialId, Trial> trials{};                                     // those that have not ended
  std::set<std::pair<double, TrialId>> paused{};                         // by loss
  std::map<std::int64_t, std::set<std::pair<double, TrialId>>> rungs{};  // trials that have reached each rung, by loss
  Seconds step_time = 0, now = 0;
  std::int64_t steps = 0;  // steps of all trials, and step_time the time that they took
  double best = worst_loss;
  int best_steps = 0;
};

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

Decision HyperSched::on_report(const Progress& progress) {
  auto& state = state_.made();
  auto& trial = state.trials[progress.trial];
  if (trial.target == 0) trial.target = grace_period;
  state.now = std::max(state.now, progress.now);
  state.steps += std::max(0, progress.steps - trial.steps);
  state.step_time += std::max(0.0, progress.elapsed - trial.elapsed);
  trial.elapsed = progress.elapsed;
  trial.steps = progress.steps;
  if (trial.paused) state.paused.erase({trial.loss, progress.trial});
  trial.loss = detail::ranked_loss(progress.loss());
  if (trial.paused) state.paused.insert({trial.loss, progress.trial});
  if (trial.loss < state.best) {
    state.best = trial.loss;
    state.best_steps = trial.steps;
  }
  if ((max_steps > 0 && progress.steps >= max_steps) || state.now >= deadline) return Decision::complete;
  if (trial.paused) return Decision::pause;
  if (progress.steps < trial.target) return Decision::proceed;
  if (progress.over) {  // it counts at its rungs, but does not pause
    for (; trial.target <= progress.steps; trial.target *= reduction_factor)
      state.rungs[trial.target].insert({trial.loss, progress.trial});
    return Decision::proceed;
  }
  for (; trial.target <= progress.steps; trial.target *= reduction_factor)
    state.rungs[trial.target].insert({trial.loss, progress.trial});
  trial.target /= reduction_factor;
  trial.paused = true;
  state.paused.insert({trial.loss, progress.trial});
  return Decision::pause;
}

void HyperSched::on_resume(TrialId id) {
  auto& state = state_.made();
  const auto found = state.trials.find(id);
  if (found == state.trials.end() || !std::exchange(found->second.paused, false)) return;
  state.paused.erase({found->second.loss, id});
  found->second.target *= reduction_factor;
}

void HyperSched::on_end(TrialId id, TrialState) {
  auto& state = state_.made();
  const auto found = state.trials.find(id);
  if (found == state.trials.end()) return;
  state.paused.erase({found->second.loss, id});
  state.trials.erase(found);
}

Choice HyperSched::choose_next(const Pool& pool) const {
  const auto& state = state_.or_default();
  const Seconds now = std::max(state.now, pool.now);
  if (now >= deadline) return state.paused.empty() ? Choice::wait() : Choice::stop(state.paused.rbegin()->second);
  if (pool.more_trials && may_enter(deadline - now)) {
    if (const auto trial = promotable()) return Choice::resume(*trial);
    return Choice::start_new();
  }
  // No new trial may start any more: the paused ones continue, the best first.
  return state.paused.empty() ? Choice::wait() : Choice::resume(state.paused.begin()->second);
}

std::string HyperSched::why(TrialId id, const LossText& losses) const {
  const auto& state = state_.or_default();
  const auto found = state.trials.find(id);
  if (found == state.trials.end()) return {};
  return detail::format("at the deadline of {:g} s: paused after {} step{} with {}", deadline, found->second.steps,
                        found->second.steps == 1 ? "" : "s", losses.named(found->second.loss));
}

bool HyperSched::may_enter(Seconds left) const {
  const auto& state = state_.or_default();
  if (state.steps == 0) return true;
  const Seconds each = state.step_time / static_cast<double>(state.steps);
  return each * std::max(grace_period, state.best_steps) <= left;
}

std::optional<TrialId> HyperSched::promotable() const {
  const auto& state = state_.or_default();
  for (auto rung = state.rungs.rbegin(); rung != state.rungs.rend(); ++rung) {
    auto quota = rung->second.size() / static_cast<std::size_t>(reduction_factor);
    for (auto entry = rung->second.begin(); quota > 0 && entry != rung->second.end(); ++entry, --quota) {
      if (!std::isfinite(entry->first)) break;
      const auto trial = state.trials.find(entry->second);
      if (trial != state.trials.end() && trial->second.paused && trial->second.target == rung->first)
        return entry->second;
    }
  }
  return std::nullopt;
}

void HyperSched::on_create(TrialId trial) {
  auto& state = state_.made();
  state.trials[trial].target = grace_period;
}

}  // namespace hypertune::inline v0
