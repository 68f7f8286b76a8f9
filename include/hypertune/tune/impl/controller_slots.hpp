// Controller: which trial gets a free slot.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/tune/controller.hpp>

namespace hypertune {

HYPERTUNE_INLINE void Controller::fill(Seconds now, Outcome& out) {
  now_ = now;
  judge_hosts(out);
  if (!ending_ && state_.ending()) end_experiment(*state_.ending(), out);
  settle_held(out);
  // Pending trials that no slot fits now may be passed by a few smaller ones, no more: a big one must not starve.
  constexpr std::size_t lookahead = 16;
  while (!ending_ && !interrupted_ && !done_ && !all_rest_ && !rules_.manual) {
    if (rules_.concurrency > 0 && live_.size() >= static_cast<std::size_t>(rules_.concurrency)) break;
    if (start_pending(out)) continue;
    const std::size_t held = pending_.size() - elsewhere_;
    if (held > 0 && (rules_.uniform_resources || held >= lookahead)) break;
    if (!start_chosen(out)) break;
  }
  if ((ending_ || interrupted_) && live_.empty()) done_ = true;
}

HYPERTUNE_INLINE bool Controller::start_pending(Outcome& out) {
  elsewhere_ = 0;
  for (auto it = pending_.begin(); it != pending_.end(); ++it) {
    const TrialId trial = *it;
    const Resources need = needs(trial);
    const auto barred = barred_for(trial, need);
    auto slot = find_slot(need, barred);
    if (!slot && !placement_.possible(need, barred)) {
      pending_.erase(it);
      refuse(trial, placement_.why_not(need, barred), out);
      return true;
    }
    newest_possible_ = std::max(newest_possible_, trial);
    if (slot && state_.trials()[trial].state == TrialState::paused && !settle_parked(trial, *slot, out)) continue;
    if (slot) {
      pending_.erase(it);
      launch(trial, std::move(*slot), out);
      return true;
    }
    if (barred.size() > barred_.size())
      ++elsewhere_;  // it waits for a host that is not the next best one: the others may go there
    else if (rules_.uniform_resources)
      break;  // the others need the same
  }
  return false;
}

// Where the trial is not to go: to hosts that are of no use; to those where it, or others with the same cause, have
// failed; where no host would be left, to those where it has; else to the last of them.
HYPERTUNE_INLINE Placement::Excluded Controller::barred_for(TrialId trial, const Resources& need) const {
  if (!faults_.failed_before(trial) || placement_.size() < 2) return barred_;
  for (auto barred : {faults_.avoided(trial), faults_.failed_on(trial), faults_.failed_on(trial, true)}) {
    barred.insert(barred_.begin(), barred_.end());
    if (placement_.worth_waiting(need, {}, barred)) return barred;
  }
  return barred_;
}

// Whether a failure may be the host's doing, and there is another one to find out.
HYPERTUNE_INLINE bool Controller::in_doubt(TrialId trial, const std::string& host, const Cause& cause) const {
  if (host.empty() || placement_.size() < 2 || !cause.retry || !faults_.doubtful(trial, cause)) return false;
  auto barred = faults_.avoided(trial, host, cause);
  barred.insert(barred_.begin(), barred_.end());
  return placement_.worth_waiting(needs(trial), {}, barred);
}

// Which hosts are set aside now.
HYPERTUNE_INLINE void Controller::judge_hosts(Outcome& out) {
  if (!hosts_changed_ && judged_ == faults_.version()) return;
  hosts_changed_ = false;
  judged_ = faults_.version();
  const Resources need = rules_.uniform_resources ? rules_.resources({}) : Resources{.cpus = 0};
  const auto suspects = faults_.aside([&](Placement::Excluded hosts) {
    hosts.insert(excluded_.begin(), excluded_.end());
    return placement_.worth_waiting(need, {}, hosts);
  });
  barred_ = excluded_;
  std::set<std::string> before = std::exchange(aside_, {});
  for (const auto& suspect : suspects) {
    barred_.insert(suspect.host);
    aside_.insert(suspect.host);
    if (before.erase(suspect.host) == 0 && !excluded_.contains(suspect.host))
      out.notices.push_back(detail::format("host {} is set aside: {}", suspect.host, suspect.why));
  }
  for (const auto& host : before)
    out.notices.push_back(
        detail::format("host {} is used again: what was laid against it is no better elsewhere", host));
}

// A trial that no host can ever hold fails alone. Without a number of samples, a resources() that asks the impossible
// of every configuration would bring such trials for ever.
HYPERTUNE_INLINE void Controller::refuse(TrialId trial, const std::string& why, Outcome& out) {
  constexpr int limit = 1000;
  end_trial(trial, TrialState::failed, Cause{.blame = Blame::infrastructure, .text = why, .retry = false}, out);
  if (!ending_ && rules_.samples == 0 && trial - newest_possible_ >= limit)
    end_experiment(detail::format("no trial can run: the last {} asked for what no host has, this one {}", limit, why),
                   out);
}

HYPERTUNE_INLINE bool Controller::start_chosen(Outcome& out) {
  std::optional<Slot> slot;
  if (rules_.uniform_resources) {
    const Resources need = rules_.resources({});
    slot = find_slot(need, barred_);
    if (!slot && live_.empty() && !placement_.possible(need, barred_))  // no event will ever change that
      end_experiment("no trial can run any more: " + placement_.why_not(need, barred_), out);
    if (!slot) return false;
  }
  const auto give_back = [&] {
    if (slot) placement_.release(*slot);
  };
  searcher_waits_ = false;  // until it is asked
  // To the scheduler, what a person holds runs.
  const auto held = static_cast<std::size_t>(std::count_if(resting_.begin(), resting_.end(), [&](TrialId trial) {
    return state_.trials()[trial].state == TrialState::paused;
  }));
  const auto paused = static_cast<std::size_t>(state_.trials().counts()[TrialState::paused]) - held;
  const Choice choice = state_.choose_next(
      {.running = live_.size() + held, .paused = paused, .more_trials = more_trials(), .now = state_.elapsed_at(now_)});
  const bool of_paused =
      choice.kind == Choice::Kind::resume || choice.kind == Choice::Kind::stop || choice.kind == Choice::Kind::exploit;
  if (of_paused) {
    const bool exists = state_.trials().contains(choice.trial);
    if (!exists || is_final(state_.trials()[choice.trial].state))
      fail(Errc::usage, "the scheduler chose trial {}, which {}: '{}' must only choose trials that it has paused",
           choice.trial, exists ? "has ended" : "does not exist", state_.scheduler());
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
      if (!rules_.uniform_resources && !(slot = find_slot(needs(choice.trial, choice.point), barred_))) return false;
      exploit(choice, out);
      [[fallthrough]];
    case Choice::Kind::resume:
      if (!slot) slot = find_slot(needs(choice.trial), barred_);
      if (!slot || !settle_parked(choice.trial, *slot, out)) return false;
      launch(choice.trial, std::move(*slot), out);
      return true;
    case Choice::Kind::stop:
      give_back();
      end_trial(choice.trial, TrialState::stopped, Cause{.text = state_.scheduler_reason(choice.trial), .retry = false},
                out);
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
HYPERTUNE_INLINE bool Controller::settle_parked(TrialId trial, Slot& slot, Outcome& out) {
  const auto& entry = state_.trials()[trial];
  const auto* home = state_.host_of(trial);
  const bool away = home != nullptr && away_.contains(*home);
  if (!entry.parked || home == nullptr || (*home == slot.host_name && !away)) return true;
  placement_.release(slot);
  const auto host = placement_.find_host(*home);
  const bool there = host && !away && !placement_.gone(*host) && !barred_.contains(*home);
  if (auto own = there ? placement_.place_on(*home, needs(trial)) : std::nullopt) {
    slot = std::move(*own);
    return true;
  }
  const auto saved = state_.restorable(trial);
  if (there && (saved.empty() || saved.front().steps != entry.steps)) return false;
  auto elsewhere = find_slot(needs(trial), barred_);
  if (!elsewhere) return false;
  slot = std::move(*elsewhere);
  out.commands.push_back(Stop{trial, entry.attempts - 1, false});
  state_.set_parked(trial, false);
  return true;
}

// Nothing can be started. Where nothing runs either, no event will ever change that: the paused trials end, and with
// them the experiment. Returns whether to look again.
HYPERTUNE_INLINE bool Controller::drain(Outcome& out) {
  if (!live_.empty() || !pending_.empty() || !resting_.empty()) return false;
  if (state_.trials().counts()[TrialState::paused] == 0) {
    require_progress();
    done_ = true;
    return false;
  }
  for (TrialId trial = 0; trial < state_.trials().size(); ++trial)
    if (state_.trials()[trial].state == TrialState::paused)
      end_trial(trial, TrialState::stopped, Cause{.text = state_.scheduler_reason(trial), .retry = false}, out);
  return true;
}

// What has nothing to wait for must not wait: nobody would ask again, and the experiment would pass for done.
HYPERTUNE_INLINE void Controller::require_progress() const {
  if (!more_trials()) return;
  const bool none = state_.trials().size() == state_.known();
  if (searcher_waits_)
    fail(Errc::experiment,
         "the searcher '{}' waits though no trial runs, so that it will never learn anything: it must suggest a "
         "configuration, or say that it is exhausted (after {} trials)",
         state_.searcher(), state_.trials().size() - state_.known());
  if (none && rules_.samples > 0)
    fail(Errc::experiment, "the scheduler '{}' starts no trial: it waits though none runs and none is paused",
         state_.scheduler());
}

HYPERTUNE_INLINE void Controller::require_sound(const Point& point, const std::string& who) const {
  const auto& space = state_.space();
  if (point.size() != space.size())
    fail(Errc::usage, "{} gave a point of {} coordinates in a space of {}", who, point.size(), space.size());
  if (const auto why = space.invalid(point))
    fail(Errc::usage, "{} gave a configuration that the space does not have: {}", who, *why);
}

HYPERTUNE_INLINE auto Controller::create(Outcome& out) -> Created {
  const TrialId trial = state_.trials().size();
  Point point;
  if (!first_.empty()) {
    point = std::move(first_.front());
    first_.pop_front();
  } else {
    auto suggestion = state_.suggest(trial, rules_.seed);
    if (!suggestion) return Created::later;
    if (suggestion->kind == Suggestion::Kind::exhausted) exhausted_ = true;
    searcher_waits_ = suggestion->kind == Suggestion::Kind::wait;
    if (suggestion->kind != Suggestion::Kind::point) return Created::none;
    point = std::move(suggestion->point);
    require_sound(point, detail::format("the searcher '{}'", state_.searcher()));
    if (const auto constraint = state_.space().violated(point))
      fail(Errc::usage, "the searcher '{}' gave a configuration that violates the constraint '{}'", state_.searcher(),
           *constraint);
  }
  Params params = state_.space().params(point);
  commit(record::TrialCreated{trial, std::move(point), std::move(params), false}, out);
  pending_.push_back(trial);
  return Created::one;
}

// Where the donor has nothing to give, the trial goes on as it was: a checkpoint that could not be written must not end
// an experiment.
HYPERTUNE_INLINE void Controller::exploit(const Choice& choice, Outcome& out) {
  const auto& entry = state_.trials()[choice.trial];
  if (!state_.trials().contains(choice.donor))
    fail(Errc::usage, "the scheduler '{}' let trial {} take over trial {}, which does not exist", state_.scheduler(),
         choice.trial, choice.donor);
  require_sound(choice.point, detail::format("the scheduler '{}'", state_.scheduler()));
  std::vector<CheckpointInfo> donated;
  if (!empty_handed_.contains(choice.donor)) donated = state_.restorable(choice.donor);
  if (choice.steps > 0) std::erase_if(donated, [&](const auto& c) { return c.steps > choice.steps; });
  if (const auto offers = offers_.find(choice.donor); offers != offers_.end())
    for (const auto& offer : offers->second)
      if (choice.steps > 0 ? offer.steps == choice.steps : offer.last)
        donated.insert(donated.begin(), offer.checkpoint);
  const auto held = std::find_if(donated.begin(), donated.end(), [&](const auto& c) { return retention_.contains(c); });
  if (held == donated.end()) {
    if (!std::exchange(told_nothing_to_take_over_, true))
      out.notices.push_back(detail::format(
          "trial {} goes on as it was: trial {} has no checkpoint to take over (a trial must save its state for that; "
          "said once, and true of all that save none)",
          choice.trial, choice.donor));
    return;
  }
  if (entry.parked) out.commands.push_back(Stop{choice.trial, entry.attempts - 1, false});
  commit(record::TrialMutated{choice.trial, choice.donor, *held, choice.point, state_.space().params(choice.point)},
         out);
  drop_superfluous(out);
}

HYPERTUNE_INLINE void Controller::launch(TrialId trial, Slot slot, Outcome& out) {
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
  go.allocation.lead = slot;
  go.seed = trial_seed(trial);
  run.next_step = go.next_step;
  commit(record::TrialStarted{trial, go.attempt, go.next_step, slot.host_name, slot.cpus, slot.gpus}, out);
  state_.set_parked(trial, false);
  run.slot = std::move(slot);
  live_.insert_or_assign(trial, std::move(run));
  if (away_.contains(go.allocation.lead.host_name))
    hold(trial, std::move(go), out);
  else
    out.commands.push_back(std::move(go));
}

// ---- Hosts that are waited for (ordered)
// -----------------------------------------------------------------------------

// Hosts that are there come first; those that are away count all the same, so that there are as many slots as ever.
HYPERTUNE_INLINE std::optional<Slot> Controller::find_slot(const Resources& need, const Placement::Excluded& barred) {
  if (!away_.empty())
    if (auto slot = find_present_slot(need, barred)) return slot;
  return placement_.place(need, barred);
}
HYPERTUNE_INLINE std::optional<Slot> Controller::find_present_slot(const Resources& need,
                                                                   Placement::Excluded elsewhere) {
  for (const auto& [name, away] : away_) elsewhere.insert(name);
  return placement_.place(need, elsewhere);
}

HYPERTUNE_INLINE void Controller::hold(TrialId trial, Launch go, Outcome& out) {
  auto& away = away_.at(go.allocation.lead.host_name);
  if (!std::exchange(away.told, true))
    out.notices.push_back(detail::format(
        "trial {} waits for host '{}' to come back, as there is no room elsewhere and all is to be decided in order; "
        "at most {:.0f} s",
        trial, go.allocation.lead.host_name, rules_.host_patience));
  held_.insert_or_assign(trial, std::move(go));
  out.held.push_back(trial);
}

// Before anything else is started: who waits for a host goes on elsewhere as soon as there is room.
HYPERTUNE_INLINE void Controller::settle_held(Outcome& out) {
  if (held_.empty()) return;
  if (interrupted_)
    for (const auto& [trial, go] : held_) stopped_.insert(trial);
  for (const TrialId trial : std::exchange(stopped_, {})) on(Stopped{trial, attempt(trial)}, out);
  std::vector<TrialId> trials;
  for (const auto& [trial, go] : held_) trials.push_back(trial);
  for (const TrialId trial : trials) {
    const Resources need = needs(trial);
    auto slot = find_present_slot(need, barred_for(trial, need));
    if (!slot) continue;
    requeue(trial, "its host has not come back yet, and there is room elsewhere", out);
    std::erase(pending_, trial);
    launch(trial, std::move(*slot), out);
  }
}

HYPERTUNE_INLINE void Controller::requeue(TrialId trial, const std::string& why, Outcome& out) {
  leave(trial);
  commit(record::AttemptFailed{trial, attempt(trial), Cause{.blame = Blame::preemption, .text = why}, true}, out);
  pending_.push_front(trial);
}

HYPERTUNE_INLINE std::vector<TrialId> Controller::held_on(const std::string& host) const {
  std::vector<TrialId> trials;
  for (const auto& [trial, go] : held_)
    if (go.allocation.lead.host_name == host) trials.push_back(trial);
  return trials;
}

HYPERTUNE_INLINE void Controller::let_go(const std::string& host, const std::string& why, Outcome& out) {
  const auto trials = held_on(host);
  for (auto trial = trials.rbegin(); trial != trials.rend(); ++trial) requeue(*trial, why, out);  // the first one first
}

HYPERTUNE_INLINE std::optional<Seconds> Controller::next_give_up() const {
  std::optional<Seconds> at;
  for (const auto& [name, away] : away_)
    if (!held_on(name).empty())
      at = std::min(at.value_or(away.since + rules_.host_patience), away.since + rules_.host_patience);
  return at;
}

// Waiting has an end: then decisions are made with the slots that there are.
HYPERTUNE_INLINE void Controller::give_up_hosts(Outcome& out) {
  for (auto at = away_.begin(); at != away_.end();) {
    const auto name = at->first;
    if (now_ < at->second.since + rules_.host_patience || held_on(name).empty()) {
      ++at;
      continue;
    }
    at = away_.erase(at);
    const std::string why = detail::format("host '{}' has not come back within {:.0f} s", name, rules_.host_patience);
    out.notices.push_back(why + ": the run goes on without it, and may decide otherwise than it would have");
    if (const auto host = placement_.find_host(name)) placement_.remove_host(*host, false, why);
    let_go(name, why, out);
  }
}

HYPERTUNE_INLINE std::optional<TrialId> Controller::ask(Seconds now, Outcome& out) {
  now_ = now;
  const std::size_t before = out.commands.size();
  while (!ending_ && !interrupted_ && !all_rest_) {
    if (!start_pending(out) && !start_chosen(out)) break;
    for (std::size_t i = before; i < out.commands.size(); ++i)
      if (const auto* go = std::get_if<Launch>(&out.commands[i])) return go->trial;
  }
  return std::nullopt;
}

}  // namespace hypertune
