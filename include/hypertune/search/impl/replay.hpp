// Replay: definitions.
#pragma once

#include <hypertune/search/replay.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

struct ReplayState {
  struct Trial {
    std::size_t at = 0;  // the current entry of the schedule
    int steps = 0;
    bool paused = false;
  };
  std::vector<Point> points;
  std::vector<std::pair<TrialId, Trial>> trials;

  Trial* find(TrialId id) {
    const auto found = std::find_if(trials.begin(), trials.end(), [&](const auto& e) { return e.first == id; });
    return found == trials.end() ? nullptr : &found->second;
  }
  /// The last entry of the schedule whose step has been reached.
  static std::size_t due(const Trial& trial, const std::vector<ScheduleEntry>& schedule) {
    std::size_t at = trial.at;
    while (at + 1 < schedule.size() && schedule[at + 1].from_step <= trial.steps) ++at;
    return at;
  }
};

}  // namespace hypertune::inline v0::detail

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

Suggestion Replay::suggest(const Ask&) { return state_.made().points.front(); }

void Replay::prepare(const SearchSpace& space, std::uint64_t) {
  auto& points = state_.made().points;
  points.clear();
  for (const auto& entry : schedule) points.push_back(space.configuration(entry.params));
}

void Replay::on_create(TrialId trial) { state_.made().trials.push_back({trial, {}}); }

void Replay::on_exploit(TrialId id, TrialId, const Point&) {
  if (auto* trial = state_.made().find(id)) trial->at = detail::ReplayState::due(*trial, schedule);
}

void Replay::on_end(TrialId id, TrialState) {
  std::erase_if(state_.made().trials, [&](const auto& entry) { return entry.first == id; });
}

Decision Replay::on_report(const Progress& progress) {
  if (max_steps > 0 && progress.steps >= max_steps) return Decision::complete;
  auto* trial = state_.made().find(progress.trial);
  if (trial == nullptr) return Decision::proceed;
  trial->steps = progress.steps;
  if (trial->paused) return Decision::pause;
  if (trial->at + 1 >= schedule.size() || progress.steps < schedule[trial->at + 1].from_step) return Decision::proceed;
  trial->paused = true;
  return Decision::pause;
}

void Replay::on_resume(TrialId id) {
  if (auto* trial = state_.made().find(id)) {
    trial->paused = false;
    trial->at = detail::ReplayState::due(*trial, schedule);  // without a checkpoint it continues unchanged
  }
}

Choice Replay::choose_next(const Pool& pool) const {
  const auto& state = state_.or_default();
  for (const auto& [id, trial] : state.trials) {
    if (!trial.paused) continue;
    const std::size_t next = detail::ReplayState::due(trial, schedule);
    if (next == trial.at || state.points.empty()) return Choice::resume(id);
    return Choice::exploit(id, id, state.points[next]);
  }
  return pool.more_trials ? Choice::start_new() : Choice::wait();
}

}  // namespace hypertune::inline v0
