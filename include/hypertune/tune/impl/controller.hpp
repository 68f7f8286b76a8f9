// Controller: how it takes up an experiment where an earlier driver left it.
#pragma once

#include <hypertune/tune/controller.hpp>

#include <algorithm>
#include <vector>

namespace hypertune::inline v0 {

HYPERTUNE_INLINE void Controller::finish_replay(Seconds now, bool survivors, Outcome& out) {
  judge_.set_now(now);
  auto& state = judge_.state();
  auto& queue = dispatcher_.queue();
  const TrialId unanswered = state.just_reported();
  newest_possible_ = trials().size() - 1;
  judge_.drop_superfluous(out);
  for (const TrialId trial : replayed_.take_pending())
    if (!trials()[trial].foreign && !is_final(trials()[trial].state)) queue.pending.push_back(trial);
  // Hosts whose workers do not outlive the driver are looked at anew; of the others the executor will not say again
  // what it has said already.
  const auto lost = replayed_.take_lost();
  if (survivors) dispatcher_.lose_again(lost);
  dispatcher_.review_exclusions(out);
  dispatcher_.hosts_changed();
  // Where drivers end and workers with them, somebody may have seen to the hosts since.
  if (!survivors) judge_.forget_faults();
  dispatcher_.judge_hosts(out);
  const auto doomed_ones = replayed_.take_doomed();
  std::vector<TrialId> again;
  for (TrialId trial = 0; trial < trials().size(); ++trial) {
    const auto& entry = trials()[trial];
    if (is_final(entry.state)) continue;
    if (const auto doomed = doomed_ones.find(trial); doomed != doomed_ones.end()) {
      end_trial(trial, TrialState::failed, doomed->second, out);
      continue;
    }
    if (entry.foreign) {  // its space is not ours any more: it cannot go on
      end_trial(trial, TrialState::stopped, Cause{.text = record::space_changed, .retry = false}, out);
      continue;
    }
    switch (entry.state) {
      case TrialState::paused:
        state.set_parked(trial, survivors && !entry.exploited);
        if (entry.exploited) {
          again.push_back(trial);  // its start was decided together with that
        } else if (entry.before_pause == Decision::proceed) {
          again.push_back(trial);  // a person had it wait, or a scheduler that is not ours
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
  queue.pending.insert(queue.pending.begin(), again.begin(), again.end());  // what was under way goes first
  // A condition that holds already ends it before anything new is begun.
  if (const auto why = state.ending() ? state.ending() : state.check_time(now); !ending_ && why)
    end_experiment(*why, out);
  for (const TrialId trial : dispatcher_.running_trials())
    if (const auto& entry = trials()[trial]; entry.reported)
      answer(trial, *dispatcher_.find(trial), entry.steps - 1, out, trial != unanswered);
}

HYPERTUNE_INLINE void Controller::try_again(std::span<const TrialId> trials, Seconds now, Outcome& out) {
  judge_.set_now(now);
  for (const TrialId trial : trials) {
    const auto& entry = judge_.trials()[trial];
    record::Any what =
        record::AttemptFailed{trial, entry.attempts - std::min<Attempt>(1, entry.attempts),
                              Cause{.source = FailureSource::preemption, .text = record::tried_again}, true};
    replayed_.follow(what, judge_.trials());  // as the next replay: it is not doomed any more, and waits
    judge_.commit(std::move(what), out);
  }
}

}  // namespace hypertune::inline v0
