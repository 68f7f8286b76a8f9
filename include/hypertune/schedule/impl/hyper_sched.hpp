// HyperSched: definitions.
#pragma once

#include <hypertune/schedule/hyper_sched.hpp>

#include <algorithm>
#include <cmath>

namespace hypertune::inline v0 {

Decision HyperSched::on_report(const Progress& progress) {
  Trial& trial = trials_[progress.trial];
  if (trial.target == 0) trial.target = grace_period;
  now_ = std::max(now_, progress.now);
  steps_ += std::max(0, progress.steps - trial.steps);
  step_time_ += std::max(0.0, progress.elapsed - trial.elapsed);
  trial.elapsed = progress.elapsed;
  trial.steps = progress.steps;
  if (trial.paused) paused_.erase({trial.loss, progress.trial});
  trial.loss = detail::ranked_loss(progress.loss());
  if (trial.paused) paused_.insert({trial.loss, progress.trial});
  if (trial.loss < best_) {
    best_ = trial.loss;
    best_steps_ = trial.steps;
  }
  if ((max_steps > 0 && progress.steps >= max_steps) || now_ >= deadline) return Decision::complete;
  if (trial.paused) return Decision::pause;
  if (progress.steps < trial.target) return Decision::proceed;
  if (progress.over) {  // it counts at its rungs, but does not pause
    for (; trial.target <= progress.steps; trial.target *= reduction_factor)
      rungs_[trial.target].insert({trial.loss, progress.trial});
    return Decision::proceed;
  }
  for (; trial.target <= progress.steps; trial.target *= reduction_factor)
    rungs_[trial.target].insert({trial.loss, progress.trial});
  trial.target /= reduction_factor;
  trial.paused = true;
  paused_.insert({trial.loss, progress.trial});
  return Decision::pause;
}

void HyperSched::on_resume(TrialId id) {
  const auto found = trials_.find(id);
  if (found == trials_.end() || !std::exchange(found->second.paused, false)) return;
  paused_.erase({found->second.loss, id});
  found->second.target *= reduction_factor;
}

void HyperSched::on_end(TrialId id, TrialState) {
  const auto found = trials_.find(id);
  if (found == trials_.end()) return;
  paused_.erase({found->second.loss, id});
  trials_.erase(found);
}

Choice HyperSched::choose_next(const Pool& pool) const {
  const Seconds now = std::max(now_, pool.now);
  if (now >= deadline) return paused_.empty() ? Choice::wait() : Choice::stop(paused_.rbegin()->second);
  if (pool.more_trials && may_enter(deadline - now)) {
    if (const auto trial = promotable()) return Choice::resume(*trial);
    return Choice::start_new();
  }
  // No new trial may start any more: the paused ones continue, the best first.
  return paused_.empty() ? Choice::wait() : Choice::resume(paused_.begin()->second);
}

std::string HyperSched::why(TrialId id, const LossText& losses) const {
  const auto found = trials_.find(id);
  if (found == trials_.end()) return {};
  return detail::format("at the deadline of {:g} s: paused after {} step{} with {}", deadline, found->second.steps,
                        found->second.steps == 1 ? "" : "s", losses.named(found->second.loss));
}

bool HyperSched::may_enter(Seconds left) const {
  if (steps_ == 0) return true;
  const Seconds each = step_time_ / static_cast<double>(steps_);
  return each * std::max(grace_period, best_steps_) <= left;
}

std::optional<TrialId> HyperSched::promotable() const {
  for (auto rung = rungs_.rbegin(); rung != rungs_.rend(); ++rung) {
    auto quota = rung->second.size() / static_cast<std::size_t>(reduction_factor);
    for (auto entry = rung->second.begin(); quota > 0 && entry != rung->second.end(); ++entry, --quota) {
      if (!std::isfinite(entry->first)) break;
      const auto trial = trials_.find(entry->second);
      if (trial != trials_.end() && trial->second.paused && trial->second.target == rung->first) return entry->second;
    }
  }
  return std::nullopt;
}

}  // namespace hypertune::inline v0
