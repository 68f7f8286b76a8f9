// Controller: how events become records and commands.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/tune/controller.hpp>

namespace hypertune {

template <class Lazy>
void BasicController<Lazy>::track(const record::Any& what) {
  if (const auto* paused = std::get_if<record::TrialPaused>(&what))
    offer(paused->trial);
  else if (const auto* sealed = std::get_if<record::TrialCheckpointed>(&what)) {
    // First: one of a longer past that leads nowhere must not pass for newer than this.
    if (bases_.contains(sealed->trial)) settle_takeover(sealed->trial);
    retention_.add(sealed->checkpoint, state_.last_loss(sealed->trial));
  } else if (const auto* mutated = std::get_if<record::TrialMutated>(&what)) {
    release(bases_, mutated->trial);
    if (retention_.pin(mutated->checkpoint)) bases_.emplace(mutated->trial, mutated->checkpoint);
    release(offers_, mutated->trial);
  } else if (const auto* failed = std::get_if<record::AttemptFailed>(&what)) {
    if (const auto* host = state_.host_of(failed->trial); failed->cause.exclude_host && host != nullptr)
      excluded_.insert(*host);
  } else if (const auto* dropped = std::get_if<record::CheckpointDropped>(&what))
    retention_.forget(dropped->checkpoint);
  else if (std::holds_alternative<record::TrialReported>(what) && state_.best() != best_) {
    best_ = state_.best();
    retention_.set_best_trial(*best_);
  }
  if (const auto* ended = std::get_if<record::TrialEnded>(&what);
      ended && is_final(state_.trials()[ended->trial].state)) {
    release(bases_, ended->trial);
    release(offers_, ended->trial);
    retention_.trial_ended(ended->trial);
  }
  if (replaying_) follow_queue(what);
}

template <class Lazy>
void BasicController<Lazy>::release(Pins& pins, TrialId trial) {
  if (const auto node = pins.extract(trial)) retention_.unpin(node.mapped());
}

// A trial that has paused is judged by what it saved there, and gives that to who takes it over: neither what it saves
// later on, with nothing to judge it by yet, nor what it happens to have saved when its host went away.
template <class Lazy>
void BasicController<Lazy>::offer(TrialId trial) {
  release(offers_, trial);
  if (!state_.takes_over()) return;
  const auto saved = state_.restorable(trial);
  if (!saved.empty() && saved.front().steps == state_.trials()[trial].steps && retention_.pin(saved.front()))
    offers_.emplace(trial, saved.front());
}

// It has saved: what it had saved before it took over another one's state leads nowhere.
template <class Lazy>
void BasicController<Lazy>::settle_takeover(TrialId trial) {
  release(bases_, trial);
  const auto* names = state_.superseded(trial);
  if (names == nullptr) return;
  const auto held = state_.checkpoints(trial);
  for (const auto& checkpoint : std::vector<CheckpointInfo>(held.begin(), held.end()))
    if (names->contains(checkpoint.name)) retention_.supersede(checkpoint);
}

// Replay: the order in which the earlier run would have started what was pending.
template <class Lazy>
void BasicController<Lazy>::follow_queue(const record::Any& what) {
  const auto leave_queue = [&](TrialId trial) {
    if (const auto node = place_.extract(trial)) queue_.erase(node.mapped());
  };
  const auto enter_queue = [&](TrialId trial, bool front) {
    leave_queue(trial);
    const std::int64_t place = queue_.empty() ? 0 : front ? queue_.begin()->first - 1 : queue_.rbegin()->first + 1;
    queue_.emplace(place, trial);
    place_.emplace(trial, place);
  };
  if (const auto* created = std::get_if<record::TrialCreated>(&what))
    enter_queue(created->trial, false);
  else if (const auto* started = std::get_if<record::TrialStarted>(&what))
    leave_queue(started->trial);
  else if (const auto* failed = std::get_if<record::AttemptFailed>(&what)) {
    if (failed->retry)
      enter_queue(failed->trial, true);
    else
      doomed_.emplace(failed->trial, failed->cause);
  } else if (const auto* ended = std::get_if<record::TrialEnded>(&what)) {
    doomed_.erase(ended->trial);
    if (state_.trials()[ended->trial].state == TrialState::pending)
      enter_queue(ended->trial, false);  // reopened
    else
      leave_queue(ended->trial);
  } else if (const auto* gained = std::get_if<record::HostGained>(&what)) {
    lost_.erase(gained->host);
  } else if (const auto* lost = std::get_if<record::HostLost>(&what)) {
    lost_.insert(lost->host);
  }
}

// ---- After a replay
// ----------------------------------------------------------------------------------------------------

template <class Lazy>
void BasicController<Lazy>::settle(Seconds now, bool survivors, Outcome& out) {
  now_ = now;
  newest_possible_ = state_.trials().size() - 1;
  drop_superfluous(out);
  for (const auto& [place, trial] : queue_)
    if (!state_.trials()[trial].foreign) pending_.push_back(trial);
  queue_.clear();
  place_.clear();
  // Hosts whose workers do not outlive the driver are looked at anew; of the others the executor will not say again
  // what it has said already.
  if (survivors)
    for (const auto& name : lost_)
      if (const auto host = placement_.find_host(name)) placement_.remove_host(*host);
  lost_.clear();
  settle_exclusions(out);
  const auto doomed_ones = std::exchange(doomed_, {});
  std::vector<TrialId> again;
  for (TrialId trial = 0; trial < state_.trials().size(); ++trial) {
    const auto& entry = state_.trials()[trial];
    if (is_final(entry.state)) continue;
    if (const auto doomed = doomed_ones.find(trial); doomed != doomed_ones.end()) {
      end_trial(trial, TrialState::failed, doomed->second, out);
      continue;
    }
    if (entry.foreign) {  // its space is not ours any more: it cannot go on
      end_trial(trial, TrialState::stopped, Cause{.text = "the search space has changed", .retry = false}, out);
      continue;
    }
    switch (entry.state) {
      case TrialState::paused:
        state_.set_parked(trial, survivors && !entry.mutated);
        if (entry.mutated) again.push_back(trial);  // its start was decided together with that
        break;
      case TrialState::running: {
        // The answer to its last report may not have been carried out.
        const bool ends = entry.owed == Decision::stop || entry.owed == Decision::complete;
        if (survivors) {
          take_over(trial, out);
        } else if (entry.owed == Decision::pause) {
          commit(record::TrialPaused{trial}, out);
        } else if (ends && !save_at_end()) {
          const bool stopped = entry.owed == Decision::stop;
          end_trial(trial, stopped ? TrialState::stopped : TrialState::completed,
                    stopped ? std::optional(Cause{.text = "scheduler", .retry = false}) : std::nullopt, out, !stopped);
        } else {
          commit(record::AttemptFailed{trial, entry.attempts - 1,
                                       Cause{.blame = Blame::preemption, .text = "the driver ended"}, true},
                 out);
          again.push_back(trial);
        }
        break;
      }
      default: break;
    }
  }
  pending_.insert(pending_.begin(), again.begin(), again.end());  // what was under way goes first
  if (!ending_ && state_.ending()) end_experiment(*state_.ending(), out);
  for (const TrialId trial : live_ids())
    if (const auto& entry = state_.trials()[trial]; entry.reported)
      answer(trial, live_.at(trial), entry.steps - 1, out);
}

// Who goes on with an experiment whose every host was excluded has seen to them.
template <class Lazy>
void BasicController<Lazy>::settle_exclusions(Outcome& out) {
  if (excluded_.empty()) return;
  std::string names;
  for (const auto& name : excluded_) names += (names.empty() ? "" : ", ") + name;
  const Resources need = rules_.uniform_resources ? rules_.resources({}) : Resources{};
  if (placement_.possible(need) && !placement_.possible(need, excluded_)) {
    excluded_.clear();
    out.notices.push_back("used again, as no host would be left: " + names);
  } else {
    out.notices.push_back("not used, as a failure there has excluded them: " + names);
  }
}

// A trial whose worker has outlived the driver: the executor is told where it stands, and gets the answer to the last
// report again, as it may have been lost with the driver.
template <class Lazy>
void BasicController<Lazy>::take_over(TrialId trial, Outcome& out) {
  const auto& entry = state_.trials()[trial];
  const auto* host = state_.host_of(trial);
  auto slot = host == nullptr ? std::nullopt : placement_.place_on(*host, needs(trial));
  if (!slot) slot = placement_.place(needs(trial));
  if (!slot) fail(Errc::resources, "there is no room for trial {}, which was running", trial);
  Launch go;
  go.trial = trial;
  go.attempt = entry.attempts - 1;
  go.point = entry.point;
  go.params = state_.space().params(entry.point);
  go.slot = *slot;
  go.seed = trial_seed(trial);
  go.restore = state_.restorable(trial);
  go.next_step = entry.reported ? entry.steps : entry.started_at;
  std::erase_if(go.restore, [&](const CheckpointInfo& c) { return c.steps > go.next_step; });
  go.since = entry.since;
  go.reported = entry.reported;
  LiveTrial run;
  run.slot = std::move(*slot);
  run.next_step = go.next_step;
  run.since = entry.since;
  live_.insert_or_assign(trial, std::move(run));
  out.commands.push_back(std::move(go));
}

template <class Lazy>
void BasicController<Lazy>::add_known(std::span<const KnownResult> known, Seconds now, Outcome& out) {
  now_ = now;
  std::int64_t index = 0, half = -1;  // a driver may have died within one
  for (TrialId trial = 0; trial < state_.trials().size() && half < 0; ++trial)
    if (state_.is_known(trial) && !is_final(state_.trials()[trial].state)) half = trial;
  for (const auto& result : known) {
    if (result.steps < 1) fail(Errc::usage, "a known result is of {} steps: it must be 1 or more", result.steps);
    if (!losses_of(result.metrics, state_.objectives()))
      fail(Errc::usage, "a known result lacks the metric that is tuned ('{}')", state_.objectives().front().metric);
    if (++index < state_.known() || (index == state_.known() && half < 0)) continue;
    TrialId trial = std::exchange(half, -1);
    if (trial < 0) {
      trial = state_.trials().size();
      commit(record::TrialCreated{trial, state_.space().point(result.params), result.params, true}, out);
    }
    if (!state_.trials()[trial].judged) commit(record::TrialReported{trial, 0, result.steps - 1, result.metrics}, out);
    std::erase(pending_, trial);
    end_trial(trial, TrialState::completed, std::nullopt, out);
  }
}

// ---- Filling slots
// -----------------------------------------------------------------------------------------------------

template <class Lazy>
void BasicController<Lazy>::fill(Seconds now, Outcome& out) {
  now_ = now;
  if (!ending_ && state_.ending()) end_experiment(*state_.ending(), out);
  // Pending trials that no slot fits now may be passed by a few smaller ones, no more: a big one must not starve.
  constexpr std::size_t lookahead = 16;
  while (!ending_ && !interrupted_ && !done_ && !rules_.manual) {
    if (rules_.concurrency > 0 && live_.size() >= static_cast<std::size_t>(rules_.concurrency)) break;
    if (start_pending(out)) continue;
    if (!pending_.empty() && (rules_.uniform_resources || pending_.size() >= lookahead)) break;
    if (!start_chosen(out)) break;
  }
  if ((ending_ || interrupted_) && live_.empty()) done_ = true;
}

template <class Lazy>
bool BasicController<Lazy>::start_pending(Outcome& out) {
  for (auto it = pending_.begin(); it != pending_.end(); ++it) {
    const TrialId trial = *it;
    const Resources need = needs(trial);
    auto slot = placement_.place(need, excluded_);
    if (!slot && !placement_.possible(need, excluded_)) {
      pending_.erase(it);
      refuse(trial, placement_.why_not(need, excluded_), out);
      return true;
    }
    newest_possible_ = std::max(newest_possible_, trial);
    if (slot) {
      pending_.erase(it);
      launch(trial, std::move(*slot), out);
      return true;
    }
    if (rules_.uniform_resources) return false;  // the others need the same
  }
  return false;
}

// A trial that no host can ever hold fails alone. Without a number of samples, a resources() that asks the impossible
// of every configuration would bring such trials for ever.
template <class Lazy>
void BasicController<Lazy>::refuse(TrialId trial, const std::string& why, Outcome& out) {
  constexpr int limit = 1000;
  end_trial(trial, TrialState::failed, Cause{.blame = Blame::infrastructure, .text = why, .retry = false}, out);
  if (!ending_ && rules_.samples == 0 && trial - newest_possible_ >= limit)
    end_experiment(detail::format("no trial can run: the last {} asked for what no host has, this one {}", limit, why),
                   out);
}

template <class Lazy>
bool BasicController<Lazy>::start_chosen(Outcome& out) {
  std::optional<Slot> slot;
  if (rules_.uniform_resources) {
    const Resources need = rules_.resources({});
    slot = placement_.place(need, excluded_);
    if (!slot && live_.empty() && !placement_.possible(need, excluded_))  // no event will ever change that
      end_experiment("no trial can run any more: " + placement_.why_not(need, excluded_), out);
    if (!slot) return false;
  }
  const auto give_back = [&] {
    if (slot) placement_.release(*slot);
  };
  const auto paused = static_cast<std::size_t>(state_.trials().counts()[TrialState::paused]);
  const Choice choice = state_.choose_next(
      {.running = live_.size(), .paused = paused, .more_trials = more_trials(), .now = state_.elapsed_at(now_)});
  const bool of_paused =
      choice.kind == Choice::Kind::resume || choice.kind == Choice::Kind::stop || choice.kind == Choice::Kind::exploit;
  if (of_paused) {
    const bool exists = state_.trials().contains(choice.trial);
    if (!exists || is_final(state_.trials()[choice.trial].state))
      fail(Errc::usage, "the scheduler chose trial {}, which {}", choice.trial,
           exists ? "has ended" : "does not exist");
    // A scheduler takes a trial for paused once it has said so, but the run may still be leaving its slot; and a donor
    // may still be saving the state that it is to give. The slot here waits for it: the event that frees the other one
    // asks again.
    const bool leaves = state_.trials()[choice.trial].state != TrialState::paused;
    if (leaves || (choice.kind == Choice::Kind::exploit && is_leaving(choice.donor))) {
      give_back();
      return false;
    }
  }
  switch (choice.kind) {
    case Choice::Kind::exploit:
      if (!rules_.uniform_resources && !(slot = placement_.place(needs(choice.trial, choice.point), excluded_)))
        return false;
      exploit(choice, out);
      [[fallthrough]];
    case Choice::Kind::resume:
      if (!slot) slot = placement_.place(needs(choice.trial), excluded_);
      if (!slot || !settle_parked(choice.trial, *slot, out)) return false;
      launch(choice.trial, std::move(*slot), out);
      return true;
    case Choice::Kind::stop:
      give_back();
      end_trial(choice.trial, TrialState::stopped, Cause{.text = "scheduler", .retry = false}, out);
      return true;
    case Choice::Kind::start_new:
      switch (more_trials() ? create(out) : Created::none) {
        case Created::one:
          if (slot) {
            const TrialId trial = pending_.back();
            pending_.pop_back();
            launch(trial, std::move(*slot), out);
          }
          return true;
        case Created::later: give_back(); return false;
        case Created::none: break;
      }
      break;
    case Choice::Kind::wait: break;
  }
  give_back();
  return drain(out);
}

// A parked run goes on where it is held. Where that host has no room, or no trust any more, the run is given up and the
// trial goes on elsewhere from its checkpoint; where it has none, its slot there is waited for. False: it waits, and
// the slot is given back.
template <class Lazy>
bool BasicController<Lazy>::settle_parked(TrialId trial, Slot& slot, Outcome& out) {
  const auto& entry = state_.trials()[trial];
  const auto* home = state_.host_of(trial);
  if (!entry.parked || home == nullptr || *home == slot.host_name) return true;
  placement_.release(slot);
  const auto host = placement_.find_host(*home);
  const bool there = host && !placement_.gone(*host) && !excluded_.contains(*home);
  if (auto own = there ? placement_.place_on(*home, needs(trial)) : std::nullopt) {
    slot = std::move(*own);
    return true;
  }
  const auto saved = state_.restorable(trial);
  if (there && (saved.empty() || saved.front().steps != entry.steps)) return false;
  auto elsewhere = placement_.place(needs(trial), excluded_);
  if (!elsewhere) return false;
  slot = std::move(*elsewhere);
  out.commands.push_back(Stop{trial, entry.attempts - 1, false});
  state_.set_parked(trial, false);
  return true;
}

// Nothing can be started. Where nothing runs either, no event will ever change that: the paused trials end, and with
// them the experiment. Returns whether to look again.
template <class Lazy>
bool BasicController<Lazy>::drain(Outcome& out) {
  if (!live_.empty() || !pending_.empty()) return false;
  if (state_.trials().counts()[TrialState::paused] == 0) {
    done_ = true;
    return false;
  }
  for (TrialId trial = 0; trial < state_.trials().size(); ++trial)
    if (state_.trials()[trial].state == TrialState::paused)
      end_trial(trial, TrialState::stopped, Cause{.text = "scheduler", .retry = false}, out);
  return true;
}

template <class Lazy>
auto BasicController<Lazy>::create(Outcome& out) -> Created {
  const TrialId trial = state_.trials().size();
  const auto first = static_cast<std::size_t>(trial - state_.known());
  Point point;
  if (first < rules_.start_with.size()) {
    point = rules_.start_with[first];
  } else {
    auto suggestion = state_.suggest(trial, rules_.seed);
    if (!suggestion) return Created::later;
    if (suggestion->kind == Suggestion::Kind::exhausted) exhausted_ = true;
    if (suggestion->kind != Suggestion::Kind::point) return Created::none;
    point = std::move(suggestion->point);
    if (point.size() != state_.space().size())
      fail(Errc::usage, "the searcher suggested a point of {} coordinates in a space of {}", point.size(),
           state_.space().size());
  }
  Params params = state_.space().params(point);
  commit(record::TrialCreated{trial, std::move(point), std::move(params), false}, out);
  pending_.push_back(trial);
  return Created::one;
}

// Where the donor has nothing to give, the trial goes on as it was: a checkpoint that could not be written must not end
// an experiment.
template <class Lazy>
void BasicController<Lazy>::exploit(const Choice& choice, Outcome& out) {
  const auto& entry = state_.trials()[choice.trial];
  if (!state_.trials().contains(choice.donor) || choice.point.size() != state_.space().size())
    fail(Errc::usage, "the scheduler let trial {} take over trial {} with a point of {} coordinates in a space of {}",
         choice.trial, choice.donor, choice.point.size(), state_.space().size());
  auto donated = state_.restorable(choice.donor);
  if (const auto offer = offers_.find(choice.donor); offer != offers_.end())
    donated.insert(donated.begin(), offer->second);
  const auto held = std::find_if(donated.begin(), donated.end(), [&](const auto& c) { return retention_.contains(c); });
  if (held == donated.end()) {
    out.notices.push_back(detail::format(
        "trial {} goes on as it was: trial {} has no checkpoint to take over (a trial must save its state for that)",
        choice.trial, choice.donor));
    return;
  }
  if (entry.parked) out.commands.push_back(Stop{choice.trial, entry.attempts - 1, false});
  commit(record::TrialMutated{choice.trial, choice.donor, *held, choice.point, state_.space().params(choice.point)},
         out);
  drop_superfluous(out);
}

template <class Lazy>
void BasicController<Lazy>::launch(TrialId trial, Slot slot, Outcome& out) {
  const auto& entry = state_.trials()[trial];
  LiveTrial run;
  Launch go;
  go.trial = trial;
  go.parked = entry.state == TrialState::paused && entry.parked;
  go.attempt = go.parked ? entry.attempts - 1 : entry.attempts;
  go.point = entry.point;
  go.params = state_.space().params(entry.point);
  if (!go.parked || state_.mutated(trial)) {  // a parked one may have to be made again from there
    go.restore = state_.restorable(trial);
    std::erase_if(go.restore, [&](const auto& checkpoint) { return !retention_.contains(checkpoint); });
    run.restoring = go.restore;
    for (const auto& checkpoint : run.restoring) retention_.pin(checkpoint);
  }
  go.next_step = go.parked ? entry.steps : go.restore.empty() ? 0 : go.restore.front().steps;
  go.slot = slot;
  go.seed = trial_seed(trial);
  run.next_step = go.next_step;
  run.since = now_;
  commit(record::TrialStarted{trial, go.attempt, go.next_step, slot.host_name, slot.cpus, slot.gpus}, out);
  state_.set_parked(trial, false);
  run.slot = std::move(slot);
  live_.insert_or_assign(trial, std::move(run));
  out.commands.push_back(std::move(go));
}

template <class Lazy>
std::optional<TrialId> BasicController<Lazy>::ask(Seconds now, Outcome& out) {
  now_ = now;
  const std::size_t before = out.commands.size();
  while (!ending_ && !interrupted_) {
    if (!start_pending(out) && !start_chosen(out)) break;
    for (std::size_t i = before; i < out.commands.size(); ++i)
      if (const auto* go = std::get_if<Launch>(&out.commands[i])) return go->trial;
  }
  return std::nullopt;
}

// ---- Events
// ------------------------------------------------------------------------------------------------------------

template <class Lazy>
void BasicController<Lazy>::on(const Started& e, Outcome& out) {
  if (auto* run = live(e.trial, e.attempt)) {
    run->next_step = e.next_step;
    unpin(*run);
    drop_superfluous(out);  // what was held back for the restore alone
  }
}

template <class Lazy>
void BasicController<Lazy>::on(Reported& e, Outcome& out) {
  auto* run = live(e.trial, e.attempt);
  if (run == nullptr) return;
  const int step = e.report.step.value_or(run->next_step);
  run->next_step = step + 1;
  run->since = now_;
  unpin(*run);
  if (step >= state_.trials()[e.trial].steps && run->phase != Phase::stopping)
    commit(record::TrialReported{e.trial, e.attempt, step, std::move(e.report.metrics)}, out);
  if (e.checkpoint) keep(*e.checkpoint, out);
  if (!ending_ && state_.ending()) end_experiment(*state_.ending(), out);
  answer(e.trial, *run, step, out);
}

template <class Lazy>
void BasicController<Lazy>::answer(TrialId trial, LiveTrial& run, int step, Outcome& out) {
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
      const bool save = rules_.checkpoint.every > 0 && (rules_.checkpoint.due(step + 1) || best_so_far);
      out.commands.push_back(Continue{trial, attempt, save});
      break;
    }
    case Decision::pause:
      run.phase = Phase::pausing;
      out.commands.push_back(Pause{trial, attempt, rules_.checkpoint.every > 0 || state_.takes_over()});
      break;
    case Decision::stop:
      stop_run(trial, run, Phase::stopping, TrialState::stopped,
               state_.last_reason().empty() ? "scheduler" : state_.last_reason(), save_at_end(), out);
      break;
    case Decision::complete:
      run.at_limit = true;
      stop_run(trial, run, Phase::stopping, TrialState::completed, "", save_at_end(), out);
      break;
  }
}

template <class Lazy>
void BasicController<Lazy>::stop_run(TrialId trial, LiveTrial& run, Phase phase, TrialState end, std::string reason,
                                     bool save, Outcome& out) {
  run.phase = phase;
  run.end = end;
  run.at_limit = run.at_limit && end == TrialState::completed;
  run.reason = std::move(reason);
  out.commands.push_back(Stop{trial, state_.trials()[trial].attempts - 1, save});
}

template <class Lazy>
void BasicController<Lazy>::on(const Checkpointed& e, Outcome& out) {
  if (state_.trials().contains(e.trial) && state_.trials()[e.trial].attempts == e.attempt + 1) keep(e.checkpoint, out);
}

template <class Lazy>
void BasicController<Lazy>::on(const CheckpointLost& e, Outcome& out) {
  if (!state_.trials().contains(e.trial)) return;
  out.notices.push_back(detail::format("trial {}: checkpoint {} cannot be used ({}); trying the one before it", e.trial,
                                       e.checkpoint.name, e.why));
  drop(e.checkpoint, e.why, out);
}

template <class Lazy>
void BasicController<Lazy>::on(const Paused& e, Outcome& out) {
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
}

template <class Lazy>
void BasicController<Lazy>::on(const Finished& e, Outcome& out) {
  if (live(e.trial, e.attempt) == nullptr) return;
  leave(e.trial);
  if (state_.trials()[e.trial].judged) {
    end_trial(e.trial, TrialState::completed, std::nullopt, out);
  } else {
    std::string names;
    for (const auto& objective : state_.objectives()) names += (names.empty() ? "'" : "', '") + objective.metric;
    end_trial(e.trial, TrialState::failed, Cause{.text = "ended without a report of " + names + "'", .retry = false},
              out);
  }
}

template <class Lazy>
void BasicController<Lazy>::on(const Stopped& e, Outcome& out) {
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

template <class Lazy>
void BasicController<Lazy>::on(const Failed& e, Outcome& out) {
  if (live(e.trial, e.attempt) == nullptr) return;
  const LiveTrial run = leave(e.trial);
  if (e.cause.exclude_host && !run.slot.host_name.empty()) {
    excluded_.insert(run.slot.host_name);
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
      return;
    }
  }
  // What a lost host takes with it is not the trial's doing, and cannot be its end.
  const bool counts =
      e.cause.blame == Blame::user || (e.cause.blame == Blame::infrastructure && !state_.on_lost_host(e.trial));
  const bool retry = e.cause.retry && (!counts || state_.trials()[e.trial].failures < rules_.failures.max);
  commit(record::AttemptFailed{e.trial, e.attempt, e.cause, retry}, out);
  if (!retry)
    end_trial(e.trial, TrialState::failed, e.cause, out);
  else if (!interrupted_)
    pending_.push_front(e.trial);
}

// What the record says already (an executor that tells it again after a restart) is not said twice.
template <class Lazy>
void BasicController<Lazy>::on(const HostGained& e, Outcome& out) {
  const auto host = static_cast<std::size_t>(e.host);
  const bool joins = e.what && host == placement_.size();
  if (joins) placement_.add_host(*e.what);
  if (e.host < 0 || host >= placement_.size()) return;
  const bool news = joins || placement_.gone(e.host) || (e.what && !gained_.contains(e.host));
  if (e.what && !joins) placement_.describe_host(e.host, e.what->total);
  if (placement_.gone(e.host)) placement_.restore_host(e.host);
  if (e.what) gained_.insert(e.host);
  if (news) commit(record::HostGained{placement_.host_name(e.host)}, out);
}

template <class Lazy>
void BasicController<Lazy>::on(const HostLost& e, Outcome& out) {
  if (e.host < 0 || static_cast<std::size_t>(e.host) >= placement_.size()) return;
  const bool known = placement_.gone(e.host);
  placement_.remove_host(e.host, e.for_good, e.why);
  if (!known) commit(record::HostLost{placement_.host_name(e.host), e.why}, out);
}

// ---- Ends
// --------------------------------------------------------------------------------------------------------------

// The end that a run was told to come to.
template <class Lazy>
void BasicController<Lazy>::end_stopped(TrialId trial, const LiveTrial& run, Outcome& out) {
  const bool completed = run.end == TrialState::completed;
  std::optional<Cause> cause;
  if (!completed) cause = Cause{.text = run.reason, .retry = false};
  end_trial(trial, run.end, std::move(cause), out, completed && run.at_limit);
}

template <class Lazy>
void BasicController<Lazy>::end_trial(TrialId trial, TrialState state, std::optional<Cause> cause, Outcome& out,
                                      bool at_limit) {
  const auto& entry = state_.trials()[trial];
  if (entry.state == TrialState::paused && entry.parked)
    out.commands.push_back(Stop{trial, entry.attempts - 1, false});  // the executor need not keep the run
  commit(record::TrialEnded{trial, state, std::move(cause), at_limit}, out);
  drop_superfluous(out);
  const int limit = rules_.failures.max_trials;
  if (!ending_ && state == TrialState::failed && limit > 0 && state_.trials().counts()[TrialState::failed] > limit)
    end_experiment(detail::format("more than {} trials failed", limit), out);
}

template <class Lazy>
void BasicController<Lazy>::end_experiment(const std::string& why, Outcome& out) {
  ending_ = why;
  for (const TrialId trial : live_ids()) {
    auto& run = live_.at(trial);
    if (run.phase == Phase::stopping) continue;
    stop_run(trial, run, Phase::stopping, TrialState::stopped, why, save_at_end(), out);
  }
  for (TrialId trial = 0; trial < state_.trials().size(); ++trial) {
    const TrialState state = state_.trials()[trial].state;
    if (state == TrialState::paused || state == TrialState::pending)
      end_trial(trial, TrialState::stopped, Cause{.text = why, .retry = false}, out);
  }
  pending_.clear();
}

template <class Lazy>
void BasicController<Lazy>::interrupt_now(Seconds now, Outcome& out) {
  now_ = now;
  interrupted_ = true;
  for (const TrialId trial : live_ids()) {
    auto& run = live_.at(trial);
    if (run.phase == Phase::running || run.phase == Phase::pausing)
      stop_run(trial, run, Phase::suspending, TrialState::stopped, "interrupted", true, out);
  }
  fill(now, out);
}

template <class Lazy>
void BasicController<Lazy>::abandon(Seconds now, Outcome& out) {
  now_ = now;
  interrupted_ = true;
  for (const TrialId trial : live_ids()) on(Stopped{trial, attempt(trial)}, out);
  fill(now, out);
}

template <class Lazy>
bool BasicController<Lazy>::is_leaving(TrialId trial) const {
  const auto found = live_.find(trial);
  return found != live_.end() && found->second.phase != Phase::running;
}

template <class Lazy>
LiveTrial BasicController<Lazy>::leave(TrialId trial) {
  auto node = live_.extract(trial);
  LiveTrial run = std::move(node.mapped());
  placement_.release(run.slot);
  unpin(run);
  return run;
}

template <class Lazy>
std::vector<TrialId> BasicController<Lazy>::live_ids() const {
  std::vector<TrialId> ids;
  for (const auto& [trial, run] : live_) ids.push_back(trial);
  std::sort(ids.begin(), ids.end());
  return ids;
}

// ---- Checkpoints
// -------------------------------------------------------------------------------------------------------

template <class Lazy>
void BasicController<Lazy>::keep(const CheckpointInfo& checkpoint, Outcome& out) {
  commit(record::TrialCheckpointed{checkpoint.trial, checkpoint}, out);
  drop_superfluous(out);
}

// What the retention lets go is recorded now and deleted when the record is durable.
template <class Lazy>
void BasicController<Lazy>::drop_superfluous(Outcome& out) {
  for (const auto& checkpoint : retention_.take_dropped()) {
    const auto held = state_.checkpoints(checkpoint.trial);
    if (std::any_of(held.begin(), held.end(), [&](const auto& c) { return c.name == checkpoint.name; }))
      drop(checkpoint, "retention", out);
  }
}

template <class Lazy>
void BasicController<Lazy>::drop(const CheckpointInfo& checkpoint, const std::string& why, Outcome& out) {
  commit(record::CheckpointDropped{checkpoint.trial, checkpoint, why}, out);
}

template <class Lazy>
void BasicController<Lazy>::unpin(LiveTrial& run) {
  for (const auto& checkpoint : run.restoring) retention_.unpin(checkpoint);
  run.restoring.clear();
}

template <class Lazy>
std::string BasicController<Lazy>::why_pending(TrialId trial) const {
  const auto& entry = state_.trials()[trial];
  if (entry.state == TrialState::paused) return "paused by the scheduler: it waits to be chosen";
  if (entry.state != TrialState::pending) return "";
  if (interrupted_) return "the experiment was interrupted: resume it";
  if (rules_.concurrency > 0 && live_.size() >= static_cast<std::size_t>(rules_.concurrency))
    return detail::format("waits for a running trial to leave: concurrency is {}", rules_.concurrency);
  return placement_.why_not(needs(trial), excluded_);
}

}  // namespace hypertune
