// Controller: turns events into records and commands, and ends trials and the experiment.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/text.hpp>
#include <hypertune/tune/detail/controller.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

void Controller::on(const Started& e, Outcome&) {
  // Its checkpoints stay pinned: a program may read them long after it has started.
  if (auto* run = dispatcher_.find(e.trial, e.attempt)) run->next_step = e.next_step;
}

void Controller::on(Reported& e, Outcome& out) {
  settle_losses(e.trial, out);  // before the report, whose answer may change the workers, too
  auto* run = dispatcher_.find(e.trial, e.attempt);
  if (run == nullptr) return;
  const int step = e.report.step.value_or(run->next_step);
  run->next_step = step + 1;
  run->over = e.report.over && !state().exploits();  // there a trial may have to go on from another state
  run->fixed = e.fixed;
  run->elastic = !e.fixed;
  run->growths = run->losses = 0;
  if (run->given_up > 0 && !run->forming && run->allocation.workers() > run->stayed) run->given_up = 0;
  const Workers& allowed = rules().workers;
  if (e.workers > 0 && e.workers != state().asked_workers(e.trial).by_trial &&
      (e.workers < allowed.min || e.workers > allowed.max))
    out.notices.push_back(detail::format("trial {} wants {} workers, but the trials of this experiment have {} to {}",
                                         e.trial, e.workers, allowed.min, allowed.max));
  if (e.workers >= 0) judge_.ask_workers(e.trial, e.workers, false, out);  // before the report: affects its answer
  if (rules().resize) run->metrics = e.report.metrics;
  // In a study a report counts even if the trial is to end: the caller does not know that yet.
  judge_.take(e, *run, step, run->phase != Phase::stopping || rules().manual, out);
  if (!e.report.remark.empty() && !told_remark_ && state().judges_reports()) {
    told_remark_ = true;
    out.notices.push_back(detail::format("trial {} {} (said once)", e.trial, detail::one_line(e.report.remark)));
  }
  if (!ending_ && state().ending()) end_experiment(*state().ending(), out);
  answer(e.trial, *run, step, out);
}

// `again`: an earlier driver gave this answer as well, and the trial's workers were decided then.
void Controller::answer(TrialId trial, LiveTrial& run, int step, Outcome& out, bool again) {
  if (run.phase != Phase::running) return;  // it was told to stop already
  const auto& entry = trials()[trial];
  const Attempt attempt = entry.attempts - 1;
  // A repeated report of the last step gets the answer still owed; the answer to any earlier step was to go on.
  const Decision decision = step + 1 == entry.steps ? entry.owed : Decision::proceed;
  if (run.over && decision == Decision::proceed) {  // what its program has printed is all there, and costs nothing
    out.commands.push_back(Continue{trial, attempt});
    return;
  }
  if (interrupted_) {
    stop_run(trial, run, Phase::suspending, TrialState::stopped, "interrupted", true, out);
    return;
  }
  if (run.warned && decision == Decision::proceed) {
    run.failure = run.warned;
    stop_run(trial, run, Phase::suspending, TrialState::stopped, run.warned->text, true, out);
    return;
  }
  switch (decision) {
    case Decision::proceed:
      if (dispatcher_.queue().is_to_pause(trial)) {
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

// Changes the number of workers. A trial gets more only if no other trial waits, or will wait, for the room, or if the
// user has asked for it. True: its workers cannot change while it runs, so it is stopped to begin again with another
// number.
bool Controller::change_workers(TrialId trial, LiveTrial& run, int step, Outcome& out, bool arrived) {
  const int have = run.allocation.workers();
  const auto wanted = dispatcher_.wanted_workers(trial, &run);
  const bool may_grow = wanted.by_user || (dispatcher_.queue().pending.empty() && !judge_.more_trials());
  if (have == wanted.most || ending_ || (have < wanted.most && !(may_grow && dispatcher_.may_grow(trial))))
    return false;
  if (!run.fixed) {
    dispatcher_.resize(trial, run, wanted.most, wanted.why, out);
    return false;
  }
  const auto saved = state().restorable(trial);
  if (saved.empty()) return false;
  const int lost = step + 1 - saved.front().steps;
  // Only if no step is lost by that. But the checkpoint that a trial on another host makes by itself is here some time
  // after its report: then those since, if they are few.
  const int max_lost = !arrived ? 0 : wanted.by_user ? step + 1 : std::max(1, (step + 1) / 10);
  if (lost > max_lost && (arrived || !judge_.save_after(trial, step + 1))) return false;
  if (!dispatcher_.worth_restart(trial, run, wanted.most)) return false;
  const std::string why =
      detail::format("begins again with {} workers: {}", have < wanted.most ? "more" : "fewer", wanted.why);
  out.notices.push_back(detail::format("trial {} {}", trial, why));
  stop_run(trial, run, Phase::suspending, TrialState::stopped, why, true, out);
  run.failure = Cause{.source = FailureSource::preemption, .text = why};
  return true;
}

// Gives running trials more workers if there is new room that no trial waits for. Does not wait for a report, because
// steps may be long; but after `max_growths` increases it does, in case workers are lost again and again as they
// start.
void Controller::use_new_room(Outcome& out) {
  constexpr int max_growths = 3;
  if (ending_ || interrupted_ || !rules().workers.elastic() || !dispatcher_.queue().pending.empty() ||
      judge_.more_trials() || !dispatcher_.take_freed())
    return;
  for (const TrialId trial : dispatcher_.running_trials()) {
    LiveTrial& run = *dispatcher_.find(trial);
    if (!run.elastic || run.phase != Phase::running || run.forming || losses_.waits(trial) || run.warned ||
        run.growths >= max_growths || !dispatcher_.may_grow(trial))
      continue;
    const auto wanted = dispatcher_.wanted_workers(trial, &run);
    if (run.allocation.workers() >= wanted.most) continue;
    dispatcher_.resize(trial, run, wanted.most, wanted.why, out);
  }
}

void Controller::on(const MemberLost& e, Outcome& out) {
  auto* run = dispatcher_.find(e.trial, e.attempt);
  if (run == nullptr || run->phase != Phase::running || run->allocation.generation != e.generation) return;
  run->elastic = true;
  // If only one worker is left, there are no further losses to wait for: its loss would end the attempt.
  const bool others_left = losses_.waits(e.trial) || run->allocation.workers() > static_cast<int>(e.ranks.size()) + 1;
  const bool gathers = rules().loss_patience > 0 && !e.leaving && !e.ranks.empty() && others_left;
  if (gathers && losses_.add(e, judge_.now() + rules().loss_patience)) {
    out.tick_earlier = true;
    return;
  }
  settle_losses(e.trial, out);
  lose_workers(e, out);
}

void Controller::settle_losses(TrialId trial, Outcome& out) {
  if (const auto loss = losses_.take(trial)) lose_workers(*loss, out);
}

void Controller::lose_workers(const MemberLost& e, Outcome& out) {
  auto* run = dispatcher_.find(e.trial, e.attempt);
  if (run == nullptr || run->phase != Phase::running || run->allocation.generation != e.generation) return;
  const int have = run->allocation.workers();
  std::vector<int> lost = e.ranks;
  std::sort(lost.begin(), lost.end());
  lost.erase(std::unique(lost.begin(), lost.end()), lost.end());
  std::erase_if(lost, [&](int rank) { return rank < 0 || rank >= have; });
  if (lost.empty() && !e.ranks.empty()) return;
  if (lost.empty() && e.newcomers.empty()) return dispatcher_.form_again(e.trial, *run, e.cause.text, out);
  const auto is_new = [&](int rank) {
    return std::find(e.newcomers.begin(), e.newcomers.end(), rank) != e.newcomers.end();
  };
  if (lost.empty()) {  // those that train would stand still, perhaps because of workers that are lost already
    int ready = 0;
    for (int rank = 0; rank < have; ++rank) ready += is_new(rank) ? 0 : 1;
    if (ready > 0 && ready >= rules().workers.min)
      dispatcher_.replace(e.trial, *run, {}, e.newcomers, e.cause.text, false, out);
    return;
  }
  const auto left = static_cast<std::size_t>(have) - lost.size();
  if (e.progress) run->losses = 0;
  if (e.leaving && left < static_cast<std::size_t>(rules().workers.min) &&
      !dispatcher_.room_beside(e.trial, *run, lost)) {
    run->warned = e.cause;  // it saves at its next report, before the workers are gone
    return;
  }
  std::string why = detail::format("{} of {} workers {} {}: {}", lost.size(), have, lost.size() == 1 ? "was" : "were",
                                   e.leaving ? "taken away" : "lost", e.cause.text);
  const bool failed = !e.leaving && e.cause.source != FailureSource::preemption;
  if (failed && static_cast<int>(left) >= rules().workers.min && std::all_of(lost.begin(), lost.end(), is_new))
    why = give_up_newcomers(e.trial, *run, lost.size(), static_cast<int>(left), e.cause.text, out);
  else  // workers that are lost again and again in the same step are hardly lost by chance
    run->too_many_losses = failed && ++run->losses > ExperimentState::max_taken;
  if (left > 0 && !interrupted_ && !run->too_many_losses &&
      dispatcher_.replace(e.trial, *run, lost, e.newcomers, why, failed, out))
    return;
  // The trial goes on from its last checkpoint when there is room.
  stop_run(e.trial, *run, Phase::suspending, TrialState::stopped, why, true, out);
  run->failure = e.cause;
  run->failure->text = why;
  run->failure->rank = -1;  // ranks have changed since
  if (run->too_many_losses)
    run->failure->text +=
        detail::format(" (workers were lost {} times in a row before anything was done)", run->losses);
}

// New workers have failed before they had done a step. That says nothing about the trial, which goes on as before: others
// are tried later, after a time that doubles. Returns the line for the record.
std::string Controller::give_up_newcomers(TrialId trial, LiveTrial& run, std::size_t count, int left,
                                          const std::string& cause, Outcome& out) {
  constexpr Seconds first = 2, longest = 300;
  ++run.given_up;
  run.stayed = left;
  const Seconds delay = std::min(longest, std::ldexp(first, std::min(run.given_up - 1, 10)));
  std::string why = detail::format(
      "{} new worker{} given up before {} first step{}: {}; another is tried in {:.0f} s if there is room", count,
      count == 1 ? " was" : "s were", count == 1 ? "its" : "their",
      run.given_up == 1 ? "" : detail::format(" ({} times in a row)", run.given_up), cause, delay);
  dispatcher_.delay_growth(trial, judge_.now() + delay);
  out.tick_earlier = true;
  return why;
}

void Controller::on(const Resized& e, Outcome&) {
  auto* run = dispatcher_.find(e.trial, e.attempt);
  if (run != nullptr && run->allocation.generation == e.generation) dispatcher_.resized(*run);
}

void Controller::stop_run(TrialId trial, LiveTrial& run, Phase phase, TrialState end, std::string reason, bool save,
                          Outcome& out) {
  run.phase = phase;
  run.end = end;
  run.at_limit = run.at_limit && end == TrialState::completed;
  run.reason = std::move(reason);
  run.by_condition = false;
  dispatcher_.stop(trial, save, out);
}

void Controller::on(const Checkpointed& e, Outcome& out) {
  if (trials().contains(e.trial) && trials()[e.trial].attempts == e.attempt + 1) judge_.keep(e.checkpoint, out);
  // Where hypertune itself says when to save, it does so after the next report, and changes the workers then.
  auto* run = dispatcher_.find(e.trial, e.attempt);
  if (run != nullptr && run->fixed && run->phase == Phase::running && !run->over && !run->warned && !interrupted_ &&
      !dispatcher_.queue().is_to_pause(e.trial) && rules().workers.elastic() && rules().checkpoint.every == 0)
    change_workers(e.trial, *run, run->next_step - 1, out, true);
}

void Controller::on(const CheckpointLost& e, Outcome& out) {
  if (!trials().contains(e.trial)) return;
  out.notices.push_back(detail::format("trial {}: checkpoint {} cannot be used ({}); trying the one before it", e.trial,
                                       e.checkpoint.name, e.why));
  judge_.drop(e.checkpoint, e.why, out);
}

void Controller::on(const Paused& e, Outcome& out) {
  if (dispatcher_.find(e.trial, e.attempt) == nullptr) return;
  const LiveTrial run = dispatcher_.leave(e.trial);
  if (run.phase == Phase::stopping) {  // the run had paused before it received the Stop
    if (e.parked) out.commands.push_back(Stop{e.trial, e.attempt, false});
    end_stopped(e.trial, run, out);
    return;
  }
  judge_.commit(record::TrialPaused{e.trial}, out);
  judge_.drop_superfluous(out);  // checkpoints that were kept for its last pause
  judge_.state().set_parked(e.trial, e.parked);
  if (trials()[e.trial].before_pause == Decision::proceed) again(e.trial);  // paused by the user, not by the scheduler
}

// The display shows failures that count. Without this line the user would not learn of a doubted one before the trial's
// last attempt.
void Controller::say_doubted(TrialId trial, const std::string& host, const Cause& cause, Outcome& out) {
  if (rules().tell_changes)
    out.notices.push_back(detail::format(
        "trial {} failed on host {} and is tried on another host first, so that this does not count yet: {}", trial,
        host, cause.text));
}

void Controller::on(const Finished& e, Outcome& out) {
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
  // It would end the same way again, unless the host is at fault.
  if (run.phase == Phase::running && dispatcher_.in_doubt(e.trial, Dispatcher::host_of(run, cause), cause)) {
    say_doubted(e.trial, Dispatcher::host_of(run, cause), cause, out);
    judge_.commit(record::AttemptFailed{e.trial, e.attempt, std::move(cause), true, true}, out);
    again(e.trial);
    return;
  }
  cause.retry = false;
  end_trial(e.trial, TrialState::failed, std::move(cause), out);
}

void Controller::on(const Stopped& e, Outcome& out) {
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
  // Interrupted, or preempted by the executor: it goes on from its last checkpoint when there is room again.
  judge_.commit(record::AttemptFailed{e.trial, e.attempt,
                                      Cause{.source = FailureSource::preemption, .text = "interrupted"}, true},
                out);
  if (!interrupted_) dispatcher_.queue().pending.push_front(e.trial);
}

void Controller::on(Failed e, Outcome& out) {
  if (dispatcher_.find(e.trial, e.attempt) == nullptr) return;
  e.cause.text = detail::one_line(e.cause.text);
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
  // The trial had already saved for its pause when its host was lost: only the event is missing.
  if (run.phase == Phase::pausing && e.cause.source != FailureSource::user && e.cause.retry) {
    const auto saved = state().restorable(e.trial);
    if (!saved.empty() && saved.front().steps == trials()[e.trial].steps) {
      judge_.commit(record::TrialPaused{e.trial}, out);
      judge_.drop_superfluous(out);
      if (trials()[e.trial].before_pause == Decision::proceed) again(e.trial);
      return;
    }
  }
  // A preemption or requeueing of the driver's job also kills the processes of its trials: such a failure is not the
  // trial's.
  const bool taken = interrupted_ && e.cause.source == FailureSource::infrastructure;
  Cause cause = taken ? Cause{.source = FailureSource::preemption, .text = "interrupted"} : e.cause;
  // The more workers a trial has, the more are lost. That is not the trial's fault as long as it makes progress.
  if (rules().workers.several() && cause.source == FailureSource::infrastructure && cause.retry &&
      !run.too_many_losses && judge_.counts(e.trial, cause) && trials()[e.trial].taken < ExperimentState::max_taken) {
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
  // The loss of preempted workers is not the fault of their hosts.
  const bool blamed = rules().workers.several() && e.cause.source != FailureSource::preemption;
  judge_.commit(record::AttemptFailed{e.trial, e.attempt, cause, retry, doubted, blamed ? host : ""}, out);
  if (!retry)
    end_trial(e.trial, TrialState::failed, cause, out);
  else
    again(e.trial);
}

// ---- Ends

// Ends the trial as its run was told to.
void Controller::end_stopped(TrialId trial, const LiveTrial& run, Outcome& out) {
  const bool completed = run.end == TrialState::completed;
  std::optional<Cause> cause;
  if (!completed) cause = Cause{.text = run.reason, .retry = run.by_condition};
  end_trial(trial, run.end, std::move(cause), out, completed && run.at_limit);
}

void Controller::end_trial(TrialId trial, TrialState end, std::optional<Cause> cause, Outcome& out, bool at_limit) {
  judge_.end(trial, end, std::move(cause), out, at_limit);
  dispatcher_.queue().ended(trial);
  const int limit = rules().failures.max_trials;
  if (!ending_ && end == TrialState::failed && limit > 0 && trials().counts()[TrialState::failed] > limit)
    end_experiment(detail::format("more than {} trials failed", limit), out);
}

void Controller::end_experiment(const std::string& why, Outcome& out) {
  ending_ = why;
  judge_.state().end(why);
  for (const TrialId trial : dispatcher_.running_trials()) {
    auto& run = *dispatcher_.find(trial);
    if (run.phase == Phase::stopping || run.over) continue;  // what is over ends by itself, now
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

void Controller::interrupt_now(Seconds now, Outcome& out) {
  judge_.set_now(now);
  interrupted_ = true;
  for (const TrialId trial : dispatcher_.running_trials()) {
    auto& run = *dispatcher_.find(trial);
    if ((run.phase == Phase::running || run.phase == Phase::pausing) && !run.over)
      stop_run(trial, run, Phase::suspending, TrialState::stopped, "interrupted", true, out);
  }
  fill(now, out);
}

void Controller::abandon(Seconds now, Outcome& out) {
  judge_.set_now(now);
  interrupted_ = true;
  for (const TrialId trial : dispatcher_.running_trials()) on(Stopped{trial, attempt(trial)}, out);
  fill(now, out);
}

std::string Controller::why_pending(TrialId trial) const {
  const auto& entry = trials()[trial];
  const auto& queue = dispatcher_.queue();
  if (queue.user_paused.contains(trial)) return "paused by hand: it waits for `hypertune continue`";
  const bool continued = is_continued(trial);
  if (entry.state == TrialState::paused && !continued) return "paused by the scheduler: it waits to be chosen";
  if (auto why = dispatcher_.why_held(trial); !why.empty()) return why;
  if (entry.state != TrialState::pending && !continued) return "";
  if (interrupted_) return "the experiment was interrupted: resume it";
  if (queue.all_paused) return "the whole experiment is paused by hand: it waits for `hypertune continue`";
  if (full()) return detail::format("waits for a running trial to leave: concurrency is {}", rules().concurrency);
  return dispatcher_.why_no_room(trial);
}

}  // namespace hypertune::inline v0
