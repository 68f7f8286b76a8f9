// Controller: which trials start when there is room.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/tune/detail/controller.hpp>

#include <algorithm>

namespace hypertune::inline v0 {

void Controller::fill(Seconds now, Outcome& out) {
  judge_.set_now(now);
  dispatcher_.judge_hosts(out);
  if (!ending_ && state().ending()) end_experiment(*state().ending(), out);
  for (const TrialId trial : dispatcher_.take_stopped(interrupted_)) on(Stopped{trial, attempt(trial)}, out);
  dispatcher_.move_held(out);
  // A pending trial that fits into no slot now may be overtaken by only a few smaller ones, so that big trials do not
  // starve.
  constexpr std::size_t lookahead = 16;
  const auto& queue = dispatcher_.queue();
  while (!ending_ && !interrupted_ && !done_ && !queue.all_paused && !rules().manual) {
    if (full()) break;
    if (start_pending(out)) continue;
    const std::size_t held = queue.pending.size() - elsewhere_;
    if (held > 0 && (rules().uniform_resources || held >= lookahead)) break;
    if (!start_chosen(out)) break;
  }
  use_new_room(out);
  if ((ending_ || interrupted_) && running() == 0) done_ = true;
}

bool Controller::start_pending(Outcome& out) {
  elsewhere_ = 0;
  auto& pending = dispatcher_.queue().pending;
  for (auto it = pending.begin(); it != pending.end(); ++it) {
    const TrialId trial = *it;
    const Resources need = judge_.needs(trial);
    const auto barred = dispatcher_.barred_for(trial, need);
    auto room = dispatcher_.find_room(need, barred);
    if (!room && !dispatcher_.possible(need, barred)) {
      pending.erase(it);
      refuse(trial, dispatcher_.why_not(need, barred), out);
      return true;
    }
    newest_possible_ = std::max(newest_possible_, trial);
    if (room && trials()[trial].state == TrialState::paused && !dispatcher_.place_parked(trial, *room, out)) continue;
    if (room) {
      pending.erase(it);
      dispatcher_.launch(trial, std::move(*room), out);
      return true;
    }
    if (barred.size() > dispatcher_.barred().size())
      ++elsewhere_;  // it avoids some hosts, which the others may use
    else if (rules().uniform_resources)
      break;  // the others need the same
  }
  return false;
}

// A trial that fits on no host fails, and the others go on. Without a number of samples, a resources() that asks for
// too much for every configuration would create such trials for ever, hence the limit.
void Controller::refuse(TrialId trial, const std::string& why, Outcome& out) {
  constexpr int limit = 1000;
  end_trial(trial, TrialState::failed, Cause{.source = FailureSource::infrastructure, .text = why, .retry = false},
            out);
  if (!ending_ && rules().samples == 0 && trial - newest_possible_ >= limit)
    end_experiment(detail::format("no trial can run: the last {} asked for what no host has, this one {}", limit, why),
                   out);
}

bool Controller::start_chosen(Outcome& out) {
  // Without trials to choose from, the experiment can end without room: the hosts may be gone by then. Most events of a
  // large run come when all its trials have begun: no room is looked for then.
  if (!judge_.more_trials() && trials().counts()[TrialState::paused] == 0) {
    judge_.about_to_choose();
    return drain(out);
  }
  std::optional<Allocation> room;
  const auto& barred = dispatcher_.barred();
  if (rules().uniform_resources) {
    const Resources need = rules().resources({});
    room = dispatcher_.find_room(need, barred);
    if (!room && running() == 0 && !dispatcher_.possible(need, barred))  // no event will ever change that
      end_experiment("no trial can run any more: " + dispatcher_.why_not(need, barred), out);
    if (!room) return false;
  }
  const auto give_back = [&] {
    if (room) dispatcher_.give_back(*room);
  };
  judge_.about_to_choose();
  const auto& user_paused = dispatcher_.queue().user_paused;
  // For the scheduler, trials that the user has paused count as running.
  const auto held = static_cast<std::size_t>(std::count_if(user_paused.begin(), user_paused.end(), [&](TrialId trial) {
    return trials()[trial].state == TrialState::paused;
  }));
  const auto paused = static_cast<std::size_t>(trials().counts()[TrialState::paused]) - held;
  const Choice choice = judge_.state().choose_next({.running = running() + held,
                                                    .paused = paused,
                                                    .more_trials = judge_.more_trials(),
                                                    .now = state().elapsed_at(judge_.now())});
  const bool of_paused =
      choice.kind == Choice::Kind::resume || choice.kind == Choice::Kind::stop || choice.kind == Choice::Kind::exploit;
  if (of_paused) {
    const bool exists = trials().contains(choice.trial);
    if (!exists || is_final(trials()[choice.trial].state))
      fail(Errc::usage, "the scheduler chose trial {}, which {}: '{}' must only choose trials that it has paused",
           choice.trial, exists ? "has ended" : "does not exist", state().scheduler());
    // For the scheduler a trial is paused once it has decided that, but the run may still occupy its slot, and a donor
    // may still be saving the state that it is to give. Wait for that: the event that frees the slot calls this
    // function again.
    const bool leaves = trials()[choice.trial].state != TrialState::paused;
    if (leaves || (choice.kind == Choice::Kind::exploit && dispatcher_.is_leaving(choice.donor))) {
      give_back();
      return false;
    }
  }
  switch (choice.kind) {
    case Choice::Kind::exploit:
      if (!rules().uniform_resources && !(room = dispatcher_.find_room(judge_.needs(choice.point), barred)))
        return false;
      judge_.exploit(choice, out);
      [[fallthrough]];
    case Choice::Kind::resume:
      if (!room) room = dispatcher_.find_room(judge_.needs(choice.trial), barred);
      if (!room || !dispatcher_.place_parked(choice.trial, *room, out)) return false;
      dispatcher_.launch(choice.trial, std::move(*room), out);
      return true;
    case Choice::Kind::stop:
      give_back();
      end_trial(choice.trial, TrialState::stopped,
                Cause{.text = state().scheduler_reason(choice.trial), .retry = false}, out);
      return true;
    case Choice::Kind::start_new:
      switch (judge_.more_trials() ? judge_.create(out) : Judge::Created::none) {
        case Judge::Created::one:
          if (room)
            dispatcher_.launch(trials().size() - 1, std::move(*room), out);
          else
            dispatcher_.queue().pending.push_back(trials().size() - 1);
          return true;
        case Judge::Created::later: give_back(); return false;
        case Judge::Created::none: break;
      }
      break;
    case Choice::Kind::wait: break;
  }
  give_back();
  return drain(out);
}

// Nothing can be started. If nothing runs either, no event will ever change that: ends the paused trials, and then the
// experiment. Returns whether to look for trials to start again.
bool Controller::drain(Outcome& out) {
  if (running() > 0 || !dispatcher_.queue().pending.empty() || !dispatcher_.queue().user_paused.empty()) return false;
  if (trials().counts()[TrialState::paused] == 0) {
    judge_.require_progress();
    done_ = true;
    return false;
  }
  for (TrialId trial = 0; trial < trials().size(); ++trial)
    if (trials()[trial].state == TrialState::paused)
      end_trial(trial, TrialState::stopped, Cause{.text = state().scheduler_reason(trial), .retry = false}, out);
  return true;
}

std::optional<TrialId> Controller::ask(Seconds now, Outcome& out) {
  judge_.set_now(now);
  const std::size_t before = out.commands.size();
  while (!ending_ && !interrupted_ && !dispatcher_.queue().all_paused) {
    if (!start_pending(out) && !start_chosen(out)) break;
    for (std::size_t i = before; i < out.commands.size(); ++i)
      if (const auto* go = std::get_if<Launch>(&out.commands[i])) return go->trial;
  }
  return std::nullopt;
}

}  // namespace hypertune::inline v0
