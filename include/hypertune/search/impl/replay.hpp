// Replay: definitions.
#pragma once

#include <hypertune/search/replay.hpp>

namespace hypertune::inline v0 {

void Replay::check() const {
  if (schedule.empty()) fail(Errc::usage, "replay: the schedule is empty");
  if (schedule.front().from_step != 0)
    fail(Errc::usage, "replay: the schedule begins at step {}, but must at 0", schedule.front().from_step);
  for (std::size_t i = 1; i < schedule.size(); ++i)
    if (schedule[i].from_step <= schedule[i - 1].from_step)
      fail(Errc::usage, "replay: the steps of a schedule must rise, but {} follows {}", schedule[i].from_step,
           schedule[i - 1].from_step);
}

Decision Replay::on_report(const Progress& progress) {
  if (max_steps > 0 && progress.steps >= max_steps) return Decision::complete;
  Trial* trial = find(progress.trial);
  if (trial == nullptr) return Decision::proceed;
  trial->steps = progress.steps;
  if (trial->paused) return Decision::pause;
  if (trial->at + 1 >= schedule.size() || progress.steps < schedule[trial->at + 1].from_step) return Decision::proceed;
  trial->paused = true;
  return Decision::pause;
}

void Replay::on_resume(TrialId id) {
  if (Trial* trial = find(id)) {
    trial->paused = false;
    trial->at = due(*trial);  // without a checkpoint it continues unchanged
  }
}

Choice Replay::choose_next(const Pool& pool) const {
  for (const auto& [id, trial] : trials_) {
    if (!trial.paused) continue;
    const std::size_t next = due(trial);
    if (next == trial.at || points_.empty()) return Choice::resume(id);
    return Choice::exploit(id, id, points_[next]);
  }
  return pool.more_trials ? Choice::start_new() : Choice::wait();
}

std::size_t Replay::due(const Trial& trial) const {
  std::size_t at = trial.at;
  while (at + 1 < schedule.size() && schedule[at + 1].from_step <= trial.steps) ++at;
  return at;
}

}  // namespace hypertune::inline v0
