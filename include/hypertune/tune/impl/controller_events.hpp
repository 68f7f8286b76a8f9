// Controller: how events become records and commands, and how trials and the experiment end.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/nearest.hpp>
#include <hypertune/tune/controller.hpp>

#include <algorithm>
#include <string>

namespace hypertune {

HYPERTUNE_INLINE void Controller::on(const Started& e, Outcome&) {
  // What it goes on from stays held: a program that has started may read it much later.
  if (auto* run = live(e.trial, e.attempt)) run->next_step = e.next_step;
}

HYPERTUNE_INLINE void Controller::on(Reported& e, Outcome& out) {
  auto* run = live(e.trial, e.attempt);
  if (run == nullptr) return;
  const int step = e.report.step.value_or(run->next_step);
  run->next_step = step + 1;
  const bool restored = !run->restoring.empty();
  unpin(*run);
  // What the caller of a study says counts, though the trial was to end: it did not know of that yet.
  if (step >= state_.trials()[e.trial].steps && (run->phase != Phase::stopping || rules_.manual)) {
    note_reported(e.trial, e.report.attributes, out);
    if (!state_.trials()[e.trial].judged) remember_names(*run, e.report.metrics);
    commit(record::TrialReported{e.trial, e.attempt, step, std::move(e.report.metrics)}, out);
  }
  if (e.checkpoint) keep(*e.checkpoint, out);
  if (restored) drop_superfluous(out);  // what was held back for the restore alone
  if (!ending_ && state_.ending()) end_experiment(*state_.ending(), out);
  answer(e.trial, *run, step, out);
}

// Before the report, so that who sees that knows them. Only what is new is written down.
HYPERTUNE_INLINE void Controller::note_reported(TrialId trial, const Attributes& attributes, Outcome& out) {
  if (attributes.empty()) return;
  Attributes all = state_.attributes(trial);
  std::size_t left_out = 0;
  if (auto changed = detail::merge_attributes(all, attributes, left_out); !changed.empty())
    commit(record::AttributesSet{trial, std::move(changed)}, out);
  if (left_out > 0 && overfull_.insert(trial).second)
    out.notices.push_back(
        detail::format("trial {}: not every attribute is kept: a trial has {} at most, with names of 1 to {} bytes",
                       trial, most_attributes, longest_attribute_name));
}

HYPERTUNE_INLINE void Controller::answer(TrialId trial, LiveTrial& run, int step, Outcome& out) {
  if (run.phase != Phase::running) return;  // it has been told to stop already
  const auto& entry = state_.trials()[trial];
  const Attempt attempt = entry.attempts - 1;
  if (interrupted_) {
    stop_run(trial, run, Phase::suspending, TrialState::stopped, "interrupted", true, out);
    return;
  }
  // A repeated report of the last step gets the answer that was owed; of an earlier one, the answer was to go on.
  const Decision decision = step + 1 == entry.steps ? entry.owed : Decision::go_on;
  const bool best_so_far = state_.best() == trial && state_.best_steps() == step + 1;
  switch (decision) {
    case Decision::go_on: {
      if (is_to_rest(trial)) {
        run.phase = Phase::pausing;
        out.commands.push_back(Pause{trial, attempt, true});
        break;
      }
      const bool save = rules_.checkpoint.every > 0 && (rules_.checkpoint.due(step + 1) || best_so_far);
      out.commands.push_back(Continue{trial, attempt, save});
      break;
    }
    case Decision::pause:
      run.phase = Phase::pausing;
      out.commands.push_back(Pause{trial, attempt, rules_.checkpoint.every > 0 || state_.takes_over()});
      break;
    case Decision::stop:
      stop_run(trial, run, Phase::stopping, TrialState::stopped, state_.reason(trial), save_at_end(), out);
      run.by_condition = state_.trials()[trial].by_condition;
      break;
    case Decision::complete:
      run.at_limit = true;
      stop_run(trial, run, Phase::stopping, TrialState::completed, "", save_at_end(), out);
      break;
  }
}

HYPERTUNE_INLINE void Controller::stop_run(TrialId trial, LiveTrial& run, Phase phase, TrialState end,
                                           std::string reason, bool save, Outcome& out) {
  run.phase = phase;
  run.end = end;
  run.at_limit = run.at_limit && end == TrialState::completed;
  run.reason = std::move(reason);
  run.by_condition = false;
  if (held_.contains(trial)) {  // nothing of it runs
    stopped_.insert(trial);
    return;
  }
  out.commands.push_back(Stop{trial, state_.trials()[trial].attempts - 1, save});
}

HYPERTUNE_INLINE void Controller::on(const Checkpointed& e, Outcome& out) {
  if (state_.trials().contains(e.trial) && state_.trials()[e.trial].attempts == e.attempt + 1) keep(e.checkpoint, out);
}

HYPERTUNE_INLINE void Controller::on(const CheckpointLost& e, Outcome& out) {
  if (!state_.trials().contains(e.trial)) return;
  out.notices.push_back(detail::format("trial {}: checkpoint {} cannot be used ({}); trying the one before it", e.trial,
                                       e.checkpoint.name, e.why));
  drop(e.checkpoint, e.why, out);
}

HYPERTUNE_INLINE void Controller::on(const Paused& e, Outcome& out) {
  if (live(e.trial, e.attempt) == nullptr) return;
  const LiveTrial run = leave(e.trial);
  if (run.phase == Phase::stopping) {  // the Stop came too late for the run, which may be held
    if (e.parked) out.commands.push_back(Stop{e.trial, e.attempt, false});
    end_stopped(e.trial, run, out);
    return;
  }
  commit(record::TrialPaused{e.trial}, out);
  drop_superfluous(out);  // what was held back for its last pause
  state_.set_parked(e.trial, e.parked);
  if (state_.trials()[e.trial].before_pause == Decision::go_on) again(e.trial);  // a person's wish, not the scheduler's
}

// For who has called the metric otherwise; a few are enough.
HYPERTUNE_INLINE void Controller::remember_names(LiveTrial& run, const Metrics& metrics) {
  constexpr std::size_t most = 8;
  for (const auto& [name, value] : metrics)
    if (run.reported.size() < most && std::find(run.reported.begin(), run.reported.end(), name) == run.reported.end())
      run.reported.push_back(name);
}

HYPERTUNE_INLINE std::string Controller::why_unjudged(const LiveTrial& run) const {
  std::string names, reported, meant;
  for (const auto& objective : state_.objectives()) {
    names += (names.empty() ? "'" : "', '") + objective.metric;
    if (std::find(run.reported.begin(), run.reported.end(), objective.metric) != run.reported.end()) continue;
    if (const auto near = detail::nearest(objective.metric, run.reported); !near.empty() && meant.empty())
      meant = detail::format("; is '{}' meant?", near);
  }
  std::string text = "ended without a report of " + names + "'";
  if (run.reported.empty()) return text;
  for (const auto& name : run.reported) reported += (reported.empty() ? "" : ", ") + name;
  text += "; reported were: " + reported;
  if (rules_.metric_given) return text + meant;
  return text +
         detail::format("; the metric is '{}' where .metric is not set: set it", state_.objectives().front().metric);
}

HYPERTUNE_INLINE void Controller::on(const Finished& e, Outcome& out) {
  if (live(e.trial, e.attempt) == nullptr) return;
  const LiveTrial run = leave(e.trial);
  if (state_.trials()[e.trial].judged) {
    end_trial(e.trial, TrialState::completed, std::nullopt, out);
    return;
  }
  if (run.phase == Phase::stopping) {  // it was to end anyway
    end_stopped(e.trial, run, out);
    return;
  }
  Cause cause{.text = why_unjudged(run)};
  // It would end so again, unless that is the host's doing.
  if (run.phase == Phase::running && in_doubt(e.trial, run.slot.host_name, cause)) {
    commit(record::AttemptFailed{e.trial, e.attempt, std::move(cause), true, true}, out);
    again(e.trial);
    return;
  }
  cause.retry = false;
  end_trial(e.trial, TrialState::failed, std::move(cause), out);
}

HYPERTUNE_INLINE void Controller::on(const Stopped& e, Outcome& out) {
  if (live(e.trial, e.attempt) == nullptr) return;
  const LiveTrial run = leave(e.trial);
  if (run.phase == Phase::stopping) {
    end_stopped(e.trial, run, out);
    return;
  }
  // Interrupted, or taken away by the executor: it goes on from its last checkpoint when there is room again.
  commit(record::AttemptFailed{e.trial, e.attempt, Cause{.blame = Blame::preemption, .text = "interrupted"}, true},
         out);
  if (!interrupted_) pending_.push_front(e.trial);
}

HYPERTUNE_INLINE void Controller::on(const Failed& e, Outcome& out) {
  if (live(e.trial, e.attempt) == nullptr) return;
  const LiveTrial run = leave(e.trial);
  if (e.cause.exclude_host && !run.slot.host_name.empty()) {
    hosts_changed_ = true;
    if (excluded_.insert(run.slot.host_name).second)
      out.notices.push_back(detail::format("host {} is not used any more: {}", run.slot.host_name, e.cause.text));
  }
  if (run.phase == Phase::stopping) {  // it was to end anyway
    end_stopped(e.trial, run, out);
    return;
  }
  // All that its pause asked for was done when its host went: only the word of it is lost.
  if (run.phase == Phase::pausing && e.cause.blame != Blame::user && e.cause.retry) {
    const auto saved = state_.restorable(e.trial);
    if (!saved.empty() && saved.front().steps == state_.trials()[e.trial].steps) {
      commit(record::TrialPaused{e.trial}, out);
      drop_superfluous(out);
      if (state_.trials()[e.trial].before_pause == Decision::go_on) again(e.trial);
      return;
    }
  }
  // What a lost host takes with it is not the trial's doing, and cannot be its end.
  const bool counts =
      e.cause.blame == Blame::user || (e.cause.blame == Blame::infrastructure && !state_.on_lost_host(e.trial));
  const bool doubted = counts && in_doubt(e.trial, run.slot.host_name, e.cause);
  const bool retry = e.cause.retry && (!counts || doubted || state_.trials()[e.trial].failures < rules_.failures.max);
  commit(record::AttemptFailed{e.trial, e.attempt, e.cause, retry, doubted}, out);
  if (!retry)
    end_trial(e.trial, TrialState::failed, e.cause, out);
  else
    again(e.trial);
}

// What the record says already (an executor that tells it again after a restart) is not said twice.
HYPERTUNE_INLINE void Controller::on(const HostGained& e, Outcome& out) {
  const auto host = static_cast<std::size_t>(e.host);
  const bool joins = e.what && host == placement_.size();
  if (joins) placement_.add_host(*e.what);
  if (e.host < 0 || host >= placement_.size()) return;
  const std::string name = placement_.host_name(e.host);
  const bool back = away_.erase(name) > 0;
  const bool news = joins || back || placement_.gone(e.host) || (e.what && !gained_.contains(e.host));
  if (e.what && !joins) placement_.describe_host(e.host, e.what->total);
  if (placement_.gone(e.host)) placement_.restore_host(e.host);
  if (e.what) gained_.insert(e.host);
  hosts_changed_ = true;
  if (news) commit(record::HostGained{name}, out);
  for (const TrialId trial : held_on(name)) {
    if (stopped_.contains(trial)) continue;
    out.commands.push_back(std::move(held_.extract(trial).mapped()));
  }
}

HYPERTUNE_INLINE void Controller::on(const HostLost& e, Outcome& out) {
  if (e.host < 0 || static_cast<std::size_t>(e.host) >= placement_.size()) return;
  const std::string name = placement_.host_name(e.host);
  const bool waited_for = away_.contains(name);
  const bool first = placement_.awaited(e.host);  // it was never there
  const bool known = (placement_.gone(e.host) && !first) || waited_for;
  hosts_changed_ = true;
  if (rules_.ordered && !e.for_good && !e.removed && !first && (waited_for || !known)) {
    away_.try_emplace(name, Away{.since = now_});
  } else {
    away_.erase(name);
    placement_.remove_host(e.host, e.for_good, e.why, e.removed);
  }
  if (!known) commit(record::HostLost{name, e.why, e.for_good}, out);
  if (!away_.contains(name)) let_go(name, detail::format("host '{}' is lost: {}", name, e.why), out);
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

HYPERTUNE_INLINE void Controller::end_trial(TrialId trial, TrialState state, std::optional<Cause> cause, Outcome& out,
                                            bool at_limit) {
  const auto& entry = state_.trials()[trial];
  if (entry.state == TrialState::paused && entry.parked)
    out.commands.push_back(Stop{trial, entry.attempts - 1, false});  // the executor need not keep the run
  commit(record::TrialEnded{trial, state, std::move(cause), at_limit}, out);
  to_rest_.erase(trial);
  resting_.erase(trial);
  drop_superfluous(out);
  const int limit = rules_.failures.max_trials;
  if (!ending_ && state == TrialState::failed && limit > 0 && state_.trials().counts()[TrialState::failed] > limit)
    end_experiment(detail::format("more than {} trials failed", limit), out);
}

HYPERTUNE_INLINE void Controller::end_experiment(const std::string& why, Outcome& out) {
  ending_ = why;
  state_.end(why);
  for (const TrialId trial : live_ids()) {
    auto& run = live_.at(trial);
    if (run.phase == Phase::stopping) continue;
    stop_run(trial, run, Phase::stopping, TrialState::stopped, why, save_at_end(), out);
    run.by_condition = true;
  }
  for (TrialId trial = 0; trial < state_.trials().size(); ++trial) {
    const TrialState state = state_.trials()[trial].state;
    if (state == TrialState::paused || state == TrialState::pending)
      end_trial(trial, TrialState::stopped, Cause{.text = why, .retry = true}, out);
  }
  pending_.clear();
}

HYPERTUNE_INLINE void Controller::interrupt_now(Seconds now, Outcome& out) {
  now_ = now;
  interrupted_ = true;
  for (const TrialId trial : live_ids()) {
    auto& run = live_.at(trial);
    if (run.phase == Phase::running || run.phase == Phase::pausing)
      stop_run(trial, run, Phase::suspending, TrialState::stopped, "interrupted", true, out);
  }
  fill(now, out);
}

HYPERTUNE_INLINE void Controller::abandon(Seconds now, Outcome& out) {
  now_ = now;
  interrupted_ = true;
  for (const TrialId trial : live_ids()) on(Stopped{trial, attempt(trial)}, out);
  fill(now, out);
}

HYPERTUNE_INLINE bool Controller::is_leaving(TrialId trial) const {
  const auto found = live_.find(trial);
  return found != live_.end() && found->second.phase != Phase::running;
}

HYPERTUNE_INLINE LiveTrial Controller::leave(TrialId trial) {
  auto node = live_.extract(trial);
  LiveTrial run = std::move(node.mapped());
  held_.erase(trial);
  stopped_.erase(trial);
  placement_.release(run.slot);
  unpin(run);
  return run;
}

HYPERTUNE_INLINE std::vector<TrialId> Controller::live_ids() const {
  std::vector<TrialId> ids;
  for (const auto& [trial, run] : live_) ids.push_back(trial);
  std::sort(ids.begin(), ids.end());
  return ids;
}

// ---- Checkpoints
// -------------------------------------------------------------------------------------------------------

HYPERTUNE_INLINE void Controller::keep(const CheckpointInfo& checkpoint, Outcome& out) {
  commit(record::TrialCheckpointed{checkpoint.trial, checkpoint}, out);
  drop_superfluous(out);
}

// What the retention lets go is recorded now and deleted when the record is durable.
HYPERTUNE_INLINE void Controller::drop_superfluous(Outcome& out) {
  for (const auto& checkpoint : retention_.take_dropped()) {
    const auto held = state_.checkpoints(checkpoint.trial);
    if (std::any_of(held.begin(), held.end(), [&](const auto& c) { return c.name == checkpoint.name; }))
      drop(checkpoint, "retention", out);
  }
}

HYPERTUNE_INLINE void Controller::drop(const CheckpointInfo& checkpoint, const std::string& why, Outcome& out) {
  commit(record::CheckpointDropped{checkpoint.trial, checkpoint, why}, out);
}

HYPERTUNE_INLINE void Controller::unpin(LiveTrial& run) {
  for (const auto& checkpoint : run.restoring) retention_.unpin(checkpoint);
  run.restoring.clear();
}

HYPERTUNE_INLINE std::string Controller::why_pending(TrialId trial) const {
  const auto& entry = state_.trials()[trial];
  if (resting_.contains(trial)) return "paused by hand: it waits for `hypertune continue`";
  if (entry.state == TrialState::paused) return "paused by the scheduler: it waits to be chosen";
  if (entry.state != TrialState::pending) return "";
  if (interrupted_) return "the experiment was interrupted: resume it";
  if (all_rest_) return "the whole experiment is paused by hand: it waits for `hypertune continue`";
  if (rules_.concurrency > 0 && live_.size() >= static_cast<std::size_t>(rules_.concurrency))
    return detail::format("waits for a running trial to leave: concurrency is {}", rules_.concurrency);
  const Resources need = needs(trial);
  const auto barred = barred_for(trial, need);
  const std::string why = placement_.why_not(need, barred);
  return barred.size() > barred_.size() && !why.empty() ? "is to be tried on another host than it failed on: " + why
                                                        : why;
}

}  // namespace hypertune
