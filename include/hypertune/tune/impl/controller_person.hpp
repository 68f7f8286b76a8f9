// Controller: what a person asks for while the experiment runs, from elsewhere.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/tune/controller.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace hypertune {

HYPERTUNE_INLINE const TrialEntry& Controller::require_open(TrialId trial) const {
  if (!state_.trials().contains(trial))
    fail(Errc::usage, "there is no trial {}: there are {}", trial, state_.trials().size());
  const auto& entry = state_.trials()[trial];
  if (is_final(entry.state)) fail(Errc::usage, "trial {} has ended already: it is {}", trial, to_string(entry.state));
  return entry;
}

HYPERTUNE_INLINE ControlAnswer Controller::carry_out(const ControlRequest& request, Seconds now, Outcome& out) {
  using Kind = ControlRequest::Kind;
  now_ = now;
  ControlAnswer answer;
  const auto attempt = [&](auto&& act) {
    std::string line;
    try {
      line = act();
    } catch (const Error& error) {
      answer.done = false;
      line = error.what();
    }
    answer.text += (answer.text.empty() ? "" : "\n") + line;
  };
  if (request.kind == Kind::why) {
    if (all_rest_ || rests()) answer.text = at_rest;
    for (const TrialId trial : request.trials) {
      std::string why = state_.trials().contains(trial) ? why_pending(trial) : "";
      std::replace(why.begin(), why.end(), '\n', ' ');
      if (!why.empty()) attempt([&] { return detail::format("trial {}: {}", trial, why); });
    }
    return answer;
  }
  if (request.kind == Kind::add) {
    attempt([&] { return add(request.params, now, out); });
  } else if (request.trials.empty()) {
    attempt([&] {
      if (request.kind == Kind::note) return note(-1, request.params, now, out);
      return request.kind == Kind::pause ? pause_all() : continue_all();
    });
  } else {
    for (const TrialId trial : request.trials)
      attempt([&] {
        if (request.kind == Kind::note) return note(trial, request.params, now, out);
        if (request.kind == Kind::stop) return stop_trial(trial, now, out);
        if (request.kind == Kind::pause) return pause_trial(trial);
        return continue_trial(trial);
      });
  }
  // Not above: what fails here is the experiment's own affair, and none of this person's.
  fill(now, out);
  return answer;
}

// Goes on when there is room, unless a person has it wait.
HYPERTUNE_INLINE void Controller::again(TrialId trial) {
  if (is_to_rest(trial))
    resting_.insert(trial);
  else if (!interrupted_)
    pending_.push_front(trial);
}

HYPERTUNE_INLINE std::string Controller::stop_trial(TrialId trial, Seconds now, Outcome& out) {
  now_ = now;
  require_open(trial);
  const auto found = live_.find(trial);
  if (found == live_.end()) {
    std::erase(pending_, trial);
    end_trial(trial, TrialState::stopped, Cause{.text = record::by_user, .retry = false}, out);
    return detail::format("trial {} is stopped", trial);
  }
  if (found->second.phase == Phase::stopping) return detail::format("trial {} is about to end already", trial);
  stop_run(trial, found->second, Phase::stopping, TrialState::stopped, record::by_user, save_at_end(), out);
  return detail::format("trial {} is told to stop", trial);
}

HYPERTUNE_INLINE std::string Controller::pause_trial(TrialId trial) {
  const auto& entry = require_open(trial);
  if (resting_.contains(trial) || to_rest_.contains(trial))
    return detail::format("trial {} is paused, or about to be, already", trial);
  to_rest_.insert(trial);
  if (std::erase(pending_, trial) > 0) {
    resting_.insert(trial);
    return detail::format("trial {} waits until it is continued", trial);
  }
  if (entry.state == TrialState::paused)
    return detail::format(
        "trial {} is paused by the scheduler; where that goes on with it, it pauses again after its first report",
        trial);
  return detail::format("trial {} pauses at its next report", trial);
}

HYPERTUNE_INLINE std::string Controller::continue_trial(TrialId trial) {
  require_open(trial);
  if (all_rest_) fail(Errc::usage, "the whole experiment is paused: continue it without naming trials");
  const bool was_to_be = to_rest_.erase(trial) > 0;
  if (resting_.erase(trial) > 0) {
    pending_.push_front(trial);
    return detail::format("trial {} goes on as soon as there is room", trial);
  }
  if (!was_to_be)
    fail(Errc::usage, "trial {} was not paused by hand: it is {}", trial, to_string(state_.trials()[trial].state));
  return detail::format("trial {} goes on", trial);
}

HYPERTUNE_INLINE std::string Controller::pause_all() {
  if (all_rest_) return "it is paused already";
  all_rest_ = true;
  return detail::format("no trial starts; {} running trial{} at the next report", live_.size(),
                        live_.size() == 1 ? " pauses" : "s pause");
}

HYPERTUNE_INLINE std::string Controller::continue_all() {
  if (!all_rest_ && resting_.empty() && to_rest_.empty()) fail(Errc::usage, "nothing was paused by hand");
  all_rest_ = false;
  to_rest_.clear();
  const auto waiting = std::exchange(resting_, {});
  pending_.insert(pending_.begin(), waiting.begin(), waiting.end());
  return detail::format("goes on: {} trial{} had paused", waiting.size(), waiting.size() == 1 ? "" : "s");
}

HYPERTUNE_INLINE std::string Controller::add(const Params& params, Seconds now, Outcome& out) {
  now_ = now;
  Point point = state_.space().point(params);
  if (const auto violated = state_.space().violated(point))
    fail(Errc::space, "the configuration violates the constraint '{}'", *violated);
  const TrialId trial = state_.trials().size();
  Params all = state_.space().params(point);
  std::string text = fmt::to_string(all);
  commit(record::TrialCreated{trial, std::move(point), std::move(all), false}, out);
  pending_.push_back(trial);
  if (rules_.samples > 0) rules_.samples = std::max(rules_.samples, state_.trials().size() - state_.known());
  return detail::format("trial {} is to try {}", trial, text);
}

HYPERTUNE_INLINE std::string Controller::note(TrialId trial, const Attributes& attributes, Seconds now, Outcome& out) {
  now_ = now;
  if (trial >= 0 && !state_.trials().contains(trial))
    fail(Errc::usage, "there is no trial {}: there are {}", trial, state_.trials().size());
  auto [changed, line] = detail::noted(trial < 0 ? "the experiment" : detail::format("trial {}", trial),
                                       state_.attributes(trial), attributes);
  if (!changed.empty()) commit(record::AttributesSet{trial, std::move(changed)}, out);
  return std::move(line);
}

}  // namespace hypertune
