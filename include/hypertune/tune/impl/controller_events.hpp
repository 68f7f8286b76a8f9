// Controller: how events become records and commands, and how trials and the experiment end.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/tune/controller.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

HYPERTUNE_INLINE void Controller::on(const Started& e, Outcome&) {
  // What it goes on from stays held: a program that has started may read it much later.
  if (auto* run = dispatcher_.find(e.trial, e.attempt)) run->next_step = e.next_step;
}

HYPERTUNE_INLINE void Controller::on(Reported& e, Outcome& out) {
  settle_losses(e.trial, out);  // its answer may change the workers, too
  auto* run = dispatcher_.find(e.trial, e.attempt);
  if (run == nullptr) return;
  const int step = e.report.step.value_or(run->next_step);
  run->next_step = step + 1;
  run->fixed = e.fixed;
  run->elastic = !e.fixed;
  run->growths = run->losses = 0;
  const Workers& allowed = rules().workers;
  if (e.workers > 0 && e.workers != state().asked_workers(e.trial).by_trial &&
      (e.workers < allowed.min || e.workers > allowed.max))
    out.notices.push_back(detail::format("trial {} wants {} workers, but the trials of this experiment have {} to {}",
                                         e.trial, e.workers, allowed.min, allowed.max));
  if (e.workers >= 0) judge_.ask_workers(e.trial, e.workers, false, out);  // before the report, whose answer it decides
  if (rules().resize) run->metrics = e.report.metrics;
  // What the caller of a study says counts, though the trial was to end: it did not know of that yet.
  judge_.take(e, *run, step, run->phase != Phase::stopping || rules().manual, out);
  if (!ending_ && state().ending()) end_experiment(*state().ending(), out);
  answer(e.trial, *run, step, out);
}

// `again`: the answer was given by an earlier driver, too, with the workers that the trial has now.
HYPERTUNE_INLINE void Controller::answer(TrialId trial, LiveTrial& run, int step, Outcome& out, bool again) {
  if (run.phase != Phase::running) return;  // it has been told to stop already
  const auto& entry = trials()[trial];
  const Attempt attempt = entry.attempts - 1;
  if (interrupted_) {
    stop_run(trial, run, Phase::suspending, TrialState::stopped, "interrupted", true, out);
    return;
  }
  // A repeated report of the last step gets the answer that was owed; of an earlier one, the answer was to go on.
  const Decision decision = step + 1 == entry.steps ? entry.owed : Decision::proceed;
  if (run.warned && decision == Decision::proceed) {
    run.failure = run.warned;
    stop_run(trial, run, Phase::suspending, TrialState::stopped, run.warned->text, true, out);
    return;
  }
  switch (decision) {
    case Decision::proceed:
      if (dispatcher_.queue().is_to_rest(trial)) {
        run.phase = Phase::pausing;
        out.commands.push_back(Pause{trial, attempt, true});
        break;
      }
      if (!again && rules().workers.elastic() && change_workers(trial, run, step, out)) break;
      out.commands.push_back(Continue{trial, attempt, judge_.save_after(trial, step + 1)});
      break;
    case Decision::pause:
      run.phase = Phase::pausing;
      out.commands.push_back(Pause{trial, attempt, rules().checkpoint.every > 0 || state().exploits()});
      break;
    case Decision::stop:
      stop_run(trial, run, Phase::stopping, TrialState::stopped, state().reason(trial), judge_.save_at_end(), out);
      run.by_condition = trials()[trial].by_condition;
      break;
    case Decision::complete:
      run.at_limit = true;
      stop_run(trial, run, Phase::stopping, TrialState::completed, "", judge_.save_at_end(), out);
      break;
  }
}

// More of them only where nobody else waits, or will, for the room; a person knows what is wanted most. True: its
// workers cannot change while it runs, and it begins again with others.
HYPERTUNE_INLINE bool Controller::change_workers(TrialId trial, LiveTrial& run, int step, Outcome& out) {
  const int have = run.allocation.workers();
  const auto wanted = dispatcher_.wanted_workers(trial, &run);
  const bool may_grow = wanted.by_person || (dispatcher_.queue().pending.empty() && !judge_.more_trials());
  if (have == wanted.most || ending_ || (have < wanted.most && !may_grow)) return false;
  if (!run.fixed) {
    dispatcher_.resize(trial, run, wanted.most, wanted.why, out);
    return false;
  }
  // Only where it loses no step by that.
  const auto saved = state().restorable(trial);
  const bool is_saved = !saved.empty() && saved.front().steps == step + 1;
  if (!is_saved && (saved.empty() || !judge_.save_after(trial, step + 1))) return false;
  if (!dispatcher_.worth_restart(trial, run, wanted.most)) return false;
  const std::string why =
      detail::format("begins again with {} workers: {}", have < wanted.most ? "more" : "fewer", wanted.why);
  out.notices.push_back(detail::format("trial {} {}", trial, why));
  stop_run(trial, run, Phase::suspending, TrialState::stopped, why, true, out);
  run.failure = Cause{.source = FailureSource::preemption, .text = why};
  return true;
}

// Where there is room now that nobody waits for: within a step, which may be long. Where workers are lost again and
// again as they begin, the next report is waited for.
HYPERTUNE_INLINE void Controller::use_new_room(Outcome& out) {
  constexpr int most_growths = 3;
  if (ending_ || interrupted_ || !rules().workers.elastic() || !dispatcher_.queue().pending.empty() ||
      judge_.more_trials() || !dispatcher_.take_freed())
    return;
  for (const TrialId trial : dispatcher_.running_trials()) {
    LiveTrial& run = *dispatcher_.find(trial);
    if (!run.elastic || run.phase != Phase::running || run.forming || losses_.waits(trial) || run.warned ||
        run.growths >= most_growths)
      continue;
    const auto wanted = dispatcher_.wanted_workers(trial, &run);
    if (run.allocation.workers() >= wanted.most) continue;
    dispatcher_.resize(trial, run, wanted.most, wanted.why, out);
  }
}

HYPERTUNE_INLINE void Controller::on(const MemberLost& e, Outcome& out) {
  auto* run = dispatcher_.find(e.trial, e.attempt);
  if (run == nullptr || run->phase != Phase::running || run->allocation.generation != e.generation) return;
  run->elastic = true;
  // Where one is left, its loss would end the attempt, and make no further generation.
  const bool others_left = losses_.waits(e.trial) || run->allocation.workers() > static_cast<int>(e.ranks.size()) + 1;
  const bool gathers = rules().loss_patience > 0 && !e.leaving && !e.ranks.empty() && others_left;
  if (gathers && losses_.add(e, judge_.now() + rules().loss_patience)) {
    out.sooner = true;
    return;
  }
  settle_losses(e.trial, out);
  lose_workers(e, out);
}

HYPERTUNE_INLINE void Controller::settle_losses(TrialId trial, Outcome& out) {
  if (const auto loss = losses_.take(trial)) lose_workers(*loss, out);
}

HYPERTUNE_INLINE void Controller::lose_workers(const MemberLost& e, Outcome& out) {
  auto* run = dispatcher_.find(e.trial, e.attempt);
  if (run == nullptr || run->phase != Phase::running || run->allocation.generation != e.generation) return;
  const int have = run->allocation.workers();
  std::vector<int> lost = e.ranks;
  std::sort(lost.begin(), lost.end());
  lost.erase(std::unique(lost.begin(), lost.end()), lost.end());
  std::erase_if(lost, [&](int rank) { return rank < 0 || rank >= have; });
  if (lost.empty() && !e.ranks.empty()) return;
  if (lost.empty()) return dispatcher_.form_again(e.trial, *run, e.cause.text, out);
  const auto left = static_cast<std::size_t>(have) - lost.size();
  if (e.progress) run->losses = 0;
  if (e.leaving && left < static_cast<std::size_t>(rules().workers.min) &&
      !dispatcher_.room_beside(e.trial, *run, lost)) {
    run->warned = e.cause;  // it saves at its next report, before they are gone
    return;
  }
  const std::string why =
      detail::format("{} of {} workers {} {}: {}", lost.size(), have, lost.size() == 1 ? "was" : "were",
                     e.leaving ? "taken away" : "lost", e.cause.text);
  const bool failed = !e.leaving && e.cause.source != FailureSource::preemption;
  // What is lost again and again as it does the same step is hardly lost by chance.
  run->futile = failed && ++run->losses > ExperimentState::most_taken;
  if (left > 0 && !interrupted_ && !run->futile && dispatcher_.replace(e.trial, *run, lost, why, failed, out)) return;
  // It goes on from its last checkpoint when there is room for it.
  stop_run(e.trial, *run, Phase::suspending, TrialState::stopped, why, true, out);
  run->failure = e.cause;
  run->failure->text = why;
  run->failure->rank = -1;  // which had another number before
  if (run->futile)
    run->failure->text +=
        detail::format(" (workers were lost {} times in a row before anything was done)", run->losses);
}

HYPERTUNE_INLINE void Controller::on(const Resized& e, Outcome&) {
  auto* run = dispatcher_.find(e.trial, e.attempt);
  if (run != nullptr && run->allocation.generation == e.generation) dispatcher_.resized(*run);
}

HYPERTUNE_INLINE void Controller::stop_run(TrialId trial, LiveTrial& run, Phase phase, TrialState end,
                                           std::string reason, bool save, Outcome& out) {
  run.phase = phase;
  run.end = end;
  run.at_limit = run.at_limit && end == TrialState::completed;
  run.reason = std::move(reason);
  run.by_condition = false;
  dispatcher_.stop(trial, save, out);
}

HYPERTUNE_INLINE void Controller::on(const Checkpointed& e, Outcome& out) {
  if (trials().contains(e.trial) && trials()[e.trial].attempts == e.attempt + 1) judge_.keep(e.checkpoint, out);
}

HYPERTUNE_INLINE void Controller::on(const CheckpointLost& e, Outcome& out) {
  if (!trials().contains(e.trial)) return;
  out.notices.push_back(detail::format("trial {}: checkpoint {} cannot be used ({}); trying the one before it", e.trial,
                                       e.checkpoint.name, e.why));
  judge_.drop(e.checkpoint, e.why, out);
}

HYPERTUNE_INLINE void Controller::on(const Paused& e, Outcome& out) {
  if (dispatcher_.find(e.trial, e.attempt) == nullptr) return;
  const LiveTrial run = dispatcher_.leave(e.trial);
  if (run.phase == Phase::stopping) {  // the Stop came too late for the run, which may be held
    if (e.parked) out.commands.push_back(Stop{e.trial, e.attempt, false});
    end_stopped(e.trial, run, out);
    return;
  }
  judge_.commit(record::TrialPaused{e.trial}, out);
  judge_.drop_superfluous(out);  // what was held back for its last pause
  judge_.state().set_parked(e.trial, e.parked);
  if (trials()[e.trial].before_pause == Decision::proceed) again(e.trial);  // a person's wish, not the scheduler's
}

// Where it counts the display says it. Of this nobody would hear before the trial's last try.
HYPERTUNE_INLINE void Controller::say_doubted(TrialId trial, const std::string& host, const Cause& cause,
                                              Outcome& out) {
  if (rules().tell_changes)
    out.notices.push_back(detail::format(
        "trial {} failed on host {} and is tried on another host first, so that this does not count yet: {}", trial,
        host, cause.text));
}

HYPERTUNE_INLINE void Controller::on(const Finished& e, Outcome& out) {
  if (dispatcher_.find(e.trial, e.attempt) == nullptr) return;
  const LiveTrial run = dispatcher_.leave(e.trial);
  if (trials()[e.trial].judged) {
    end_trial(e.trial, TrialState::completed, std::nullopt, out);
    return;
  }
  if (run.phase == Phase::stopping) {  // it was to end anyway
    end_stopped(e.trial, run, out);
    return;
  }
  Cause cause{.text = judge_.why_unjudged(run)};
  // It would end so again, unless that is the host's doing.
  if (run.phase == Phase::running && dispatcher_.in_doubt(e.trial, Dispatcher::host_of(run, cause), cause)) {
    say_doubted(e.trial, Dispatcher::host_of(run, cause), cause, out);
    judge_.commit(record::AttemptFailed{e.trial, e.attempt, std::move(cause), true, true}, out);
    again(e.trial);
    return;
  }
  cause.retry = false;
  end_trial(e.trial, TrialState::failed, std::move(cause), out);
}

HYPERTUNE_INLINE void Controller::on(const Stopped& e, Outcome& out) {
  auto* live = dispatcher_.find(e.trial, e.attempt);
  if (live == nullptr) return;
  if (live->failure && live->phase == Phase::suspending && !interrupted_) {
    on(Failed{e.trial, e.attempt, std::move(*live->failure)}, out);
    return;
  }
  const LiveTrial run = dispatcher_.leave(e.trial);
  if (run.phase == Phase::stopping) {
    end_stopped(e.trial, run, out);
    return;
  }
  // Interrupted, or taken away by the executor: it goes on from its last checkpoint when there is room again.
  judge_.commit(record::AttemptFailed{e.trial, e.attempt,
                                      Cause{.source = FailureSource::preemption, .text = "interrupted"}, true},
                out);
  if (!interrupted_) dispatcher_.queue().pending.push_front(e.trial);
}

HYPERTUNE_INLINE void Controller::on(const Failed& e, Outcome& out) {
  if (dispatcher_.find(e.trial, e.attempt) == nullptr) return;
  const LiveTrial run = dispatcher_.leave(e.trial);
  const std::string host = Dispatcher::host_of(run, e.cause);
  bool told = false;
  if (e.cause.exclude_host && !host.empty()) {
    dispatcher_.hosts_changed();
    told = judge_.exclude(host);
    if (told) out.notices.push_back(detail::format("host {} is not used any more: {}", host, e.cause.text));
  }
  if (run.phase == Phase::stopping) {  // it was to end anyway
    end_stopped(e.trial, run, out);
    return;
  }
  // All that its pause asked for was done when its host went: only the word of it is lost.
  if (run.phase == Phase::pausing && e.cause.source != FailureSource::user && e.cause.retry) {
    const auto saved = state().restorable(e.trial);
    if (!saved.empty() && saved.front().steps == trials()[e.trial].steps) {
      judge_.commit(record::TrialPaused{e.trial}, out);
      judge_.drop_superfluous(out);
      if (trials()[e.trial].before_pause == Decision::proceed) again(e.trial);
      return;
    }
  }
  // Whoever takes the driver away (a preemption, a job that is requeued) takes its trials' processes with it: that one
  // of them was killed then says nothing of the trial.
  const bool taken = interrupted_ && e.cause.source == FailureSource::infrastructure;
  Cause cause = taken ? Cause{.source = FailureSource::preemption, .text = "interrupted"} : e.cause;
  // Of several workers the more are lost the more there are: that is not the trial's doing as long as it comes further.
  if (rules().workers.several() && cause.source == FailureSource::infrastructure && cause.retry && !run.futile &&
      judge_.counts(e.trial, cause) && trials()[e.trial].taken < ExperimentState::most_taken) {
    cause.source = FailureSource::preemption;
    out.notices.push_back(detail::format("trial {} {}, with what workers there is room for: {}", e.trial,
                                         state().restorable(e.trial).empty() ? "begins again, as it has no checkpoint"
                                                                             : "goes on from its last checkpoint",
                                         cause.text));
  }
  const bool counts = judge_.counts(e.trial, cause);
  const bool doubted = counts && dispatcher_.in_doubt(e.trial, host, cause);
  if (doubted && !told) say_doubted(e.trial, host, cause, out);
  const bool retry = cause.retry && (!counts || doubted || judge_.may_fail_again(e.trial));
  // Workers that were taken away say nothing of their hosts.
  const bool blamed = rules().workers.several() && e.cause.source != FailureSource::preemption;
  judge_.commit(record::AttemptFailed{e.trial, e.attempt, cause, retry, doubted, blamed ? host : ""}, out);
  if (!retry)
    end_trial(e.trial, TrialState::failed, cause, out);
  else
    again(e.trial);
}

// ---- Ends
// --------------------------------------------------------------------------------------------------------------

// The end that a run was told to come to.
HYPERTUNE_INLINE void Controller::end_stopped(TrialId trial, const LiveTrial& run, Outcome& out) {
  const bool completed = run.end == TrialState::completed;
  std::optional<Cause> cause;
  if (!completed) cause = Cause{.text = run.reason, .retry = run.by_condition};
  end_trial(trial, run.end, std::move(cause), out, completed && run.at_limit);
}

HYPERTUNE_INLINE void Controller::end_trial(TrialId trial, TrialState end, std::optional<Cause> cause, Outcome& out,
                                            bool at_limit) {
  judge_.end(trial, end, std::move(cause), out, at_limit);
  dispatcher_.queue().ended(trial);
  const int limit = rules().failures.max_trials;
  if (!ending_ && end == TrialState::failed && limit > 0 && trials().counts()[TrialState::failed] > limit)
    end_experiment(detail::format("more than {} trials failed", limit), out);
}

HYPERTUNE_INLINE void Controller::end_experiment(const std::string& why, Outcome& out) {
  ending_ = why;
  judge_.state().end(why);
  for (const TrialId trial : dispatcher_.running_trials()) {
    auto& run = *dispatcher_.find(trial);
    if (run.phase == Phase::stopping) continue;
    stop_run(trial, run, Phase::stopping, TrialState::stopped, why, judge_.save_at_end(), out);
    run.by_condition = true;
  }
  for (TrialId trial = 0; trial < trials().size(); ++trial) {
    const TrialState now = trials()[trial].state;
    if (now == TrialState::paused || now == TrialState::pending)
      end_trial(trial, TrialState::stopped, Cause{.text = why, .retry = true}, out);
  }
  dispatcher_.queue().pending.clear();
}

HYPERTUNE_INLINE void Controller::interrupt_now(Seconds now, Outcome& out) {
  judge_.set_now(now);
  interrupted_ = true;
  for (const TrialId trial : dispatcher_.running_trials()) {
    auto& run = *dispatcher_.find(trial);
    if (run.phase == Phase::running || run.phase == Phase::pausing)
      stop_run(trial, run, Phase::suspending, TrialState::stopped, "interrupted", true, out);
  }
  fill(now, out);
}

HYPERTUNE_INLINE void Controller::abandon(Seconds now, Outcome& out) {
  judge_.set_now(now);
  interrupted_ = true;
  for (const TrialId trial : dispatcher_.running_trials()) on(Stopped{trial, attempt(trial)}, out);
  fill(now, out);
}

HYPERTUNE_INLINE std::string Controller::why_pending(TrialId trial) const {
  const auto& entry = trials()[trial];
  const auto& queue = dispatcher_.queue();
  if (queue.resting.contains(trial)) return "paused by hand: it waits for `hypertune continue`";
  if (entry.state == TrialState::paused) return "paused by the scheduler: it waits to be chosen";
  if (auto why = dispatcher_.why_held(trial); !why.empty()) return why;
  if (entry.state != TrialState::pending) return "";
  if (interrupted_) return "the experiment was interrupted: resume it";
  if (queue.all_rest) return "the whole experiment is paused by hand: it waits for `hypertune continue`";
  if (full()) return detail::format("waits for a running trial to leave: concurrency is {}", rules().concurrency);
  return dispatcher_.why_no_room(trial);
}

}  // namespace hypertune::inline v0
