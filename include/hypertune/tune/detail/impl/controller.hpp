// Controller: goes on with the experiment of an earlier driver.
#pragma once

#include <hypertune/tune/detail/controller.hpp>

#include <algorithm>
#include <vector>

namespace hypertune::inline v0 {

void Controller::finish_replay(Seconds now, bool survivors, Outcome& out) {
  judge_.set_now(now);
  auto& state = judge_.state();
  auto& queue = dispatcher_.queue();
  const TrialId unanswered = state.just_reported();
  newest_possible_ = trials().size() - 1;
  judge_.drop_superfluous(out);
  for (const TrialId trial : replayed_.take_pending())
    if (!trials()[trial].foreign && !is_final(trials()[trial].state)) queue.pending.push_back(trial);
  // If workers do not outlive the driver, all hosts are tried afresh. Otherwise the executor does not report lost hosts
  // again.
  const auto lost = replayed_.take_lost();
  if (survivors) dispatcher_.mark_hosts_lost(lost);
  dispatcher_.review_exclusions(out);
  dispatcher_.hosts_changed();
  // If the workers ended with the driver, the hosts may have been repaired since.
  if (!survivors) judge_.forget_faults();
  dispatcher_.judge_hosts(out);
  const auto failed_unended = replayed_.take_failed_unended();
  std::vector<TrialId> again;
  for (TrialId trial = 0; trial < trials().size(); ++trial) {
    const auto& entry = trials()[trial];
    if (is_final(entry.state)) continue;
    if (const auto failed = failed_unended.find(trial); failed != failed_unended.end()) {
      end_trial(trial, TrialState::failed, failed->second, out);
      continue;
    }
    if (entry.foreign) {  // the search space has changed: the trial cannot go on
      end_trial(trial, TrialState::stopped, Cause{.text = record::space_changed, .retry = false}, out);
      continue;
    }
    switch (entry.state) {
      case TrialState::paused:
        state.set_parked(trial, survivors && !entry.exploited);
        if (entry.exploited) {
          again.push_back(trial);  // its start was decided together with the takeover
        } else if (entry.before_pause == Decision::proceed) {
          again.push_back(trial);  // paused by the user, or by another scheduler of before
        } else if (entry.before_pause != Decision::pause) {
          const bool stopped = entry.before_pause == Decision::stop;
          end_trial(trial, stopped ? TrialState::stopped : TrialState::completed,
                    stopped ? std::optional(Cause{.text = record::by_scheduler, .retry = false}) : std::nullopt, out,
                    !stopped);
        }
        break;
      case TrialState::running: {
        if (survivors) {
          dispatcher_.take_over(trial, out);
        } else if (!judge_.carry_out_owed(trial, out)) {
          judge_.commit(
              record::AttemptFailed{trial, entry.attempts - 1,
                                    Cause{.source = FailureSource::preemption, .text = "the driver ended"}, true},
              out);
          again.push_back(trial);
        }
        break;
      }
      case TrialState::pending:
        if (!survivors && entry.attempts > 0 && judge_.carry_out_owed(trial, out)) queue.erase(trial);
        break;
      default: break;
    }
  }
  queue.pending.insert(queue.pending.begin(), again.begin(), again.end());  // trials that ran go first
  // If a stop condition holds already, the experiment ends before anything new starts.
  if (const auto why = state.ending() ? state.ending() : state.check_time(now); !ending_ && why)
    end_experiment(*why, out);
  for (const TrialId trial : dispatcher_.running_trials())
    if (const auto& entry = trials()[trial]; entry.reported)
      answer(trial, *dispatcher_.find(trial), entry.steps - 1, out, trial != unanswered);
}

void Controller::try_again(std::span<const TrialId> trials, Seconds now, Outcome& out) {
  judge_.set_now(now);
  for (const TrialId trial : trials) {
    const auto& entry = judge_.trials()[trial];
    record::Any what =
        record::AttemptFailed{trial, entry.attempts - std::min<Attempt>(1, entry.attempts),
                              Cause{.source = FailureSource::preemption, .text = record::tried_again}, true};
    replayed_.follow(what, judge_.trials());  // as the next replay will: the trial is pending, no longer failed
    judge_.commit(std::move(what), out);
  }
}

}  // namespace hypertune::inline v0
