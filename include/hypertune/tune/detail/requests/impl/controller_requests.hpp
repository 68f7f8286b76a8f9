// Controller: requests of the user from another terminal.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/tune/detail/controller.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace hypertune::inline v0 {

const TrialEntry& Controller::require_open(TrialId trial) const {
  if (!trials().contains(trial)) fail(Errc::usage, "there is no trial {}: there are {}", trial, trials().size());
  const auto& entry = trials()[trial];
  if (is_final(entry.state)) fail(Errc::usage, "trial {} has ended already: it is {}", trial, to_string(entry.state));
  return entry;
}

ControlAnswer Controller::carry_out(const ControlRequest& request, Seconds now, Outcome& out) {
  using Kind = ControlRequest::Kind;
  judge_.set_now(now);
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
    if (dispatcher_.queue().all_paused || is_paused()) answer.text = experiment_paused_text;
    for (const TrialId trial : request.trials) {
      std::string why = trials().contains(trial) ? why_pending(trial) : "";
      std::replace(why.begin(), why.end(), '\n', ' ');
      if (!why.empty()) attempt([&] { return detail::format("trial {}: {}", trial, why); });
    }
    // Without a pending trial, say what the next one would wait for.
    if (request.trials.empty() && answer.text.empty() && running() == 0 && !interrupted_ && !ending_ &&
        rules().uniform_resources && !rules().manual) {
      std::string why = dispatcher_.why_not(rules().resources({}), dispatcher_.barred());
      std::replace(why.begin(), why.end(), '\n', ' ');
      if (!why.empty()) answer.text = std::string(nothing_runs) + why;
    }
    return answer;
  }
  if (request.kind == Kind::add) {
    attempt([&] { return add(request.params, now, out); });
  } else if (request.kind == Kind::resize) {
    std::vector<TrialId> those = request.trials;
    for (TrialId trial = 0; request.trials.empty() && trial < trials().size(); ++trial)
      if (!is_final(trials()[trial].state)) those.push_back(trial);
    if (those.empty()) those.push_back(0);  // its error says what is wrong
    for (const TrialId trial : those)
      attempt([&] { return resize_trial(trial, request.params.get<int>("workers"), now, out); });
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
  // Outside of attempt(): an error here is one of the experiment, not of the request.
  fill(now, out);
  return answer;
}

// The trial goes on when there is room, unless the user has paused it.
void Controller::again(TrialId trial) {
  auto& queue = dispatcher_.queue();
  if (queue.is_to_pause(trial))
    queue.user_paused.insert(trial);
  else if (!interrupted_)
    queue.pending.push_front(trial);
}

std::string Controller::stop_trial(TrialId trial, Seconds now, Outcome& out) {
  judge_.set_now(now);
  require_open(trial);
  LiveTrial* const run = dispatcher_.find(trial);
  if (run == nullptr) {
    dispatcher_.queue().erase(trial);
    end_trial(trial, TrialState::stopped, Cause{.text = record::by_user, .retry = false}, out);
    return detail::format("trial {} is stopped", trial);
  }
  if (run->phase == Phase::stopping) return detail::format("trial {} is about to end already", trial);
  stop_run(trial, *run, Phase::stopping, TrialState::stopped, record::by_user, judge_.save_at_end(), out);
  return detail::format("trial {} is told to stop", trial);
}

std::string Controller::pause_trial(TrialId trial) {
  auto& queue = dispatcher_.queue();
  const auto& entry = require_open(trial);
  if (queue.user_paused.contains(trial) || queue.to_pause.contains(trial))
    return detail::format("trial {} is paused, or about to be, already", trial);
  queue.to_pause.insert(trial);
  if (queue.erase(trial)) {
    queue.user_paused.insert(trial);
    return detail::format("trial {} waits until it is continued", trial);
  }
  if (entry.state == TrialState::paused)
    return detail::format(
        "trial {} is paused by the scheduler; where that goes on with it, it pauses again after its first report",
        trial);
  return detail::format("trial {} pauses at its next report", trial);
}

std::string Controller::continue_trial(TrialId trial) {
  auto& queue = dispatcher_.queue();
  require_open(trial);
  if (queue.all_paused) fail(Errc::usage, "the whole experiment is paused: continue it without naming trials");
  const bool was_to_be = queue.to_pause.erase(trial) > 0;
  if (queue.user_paused.erase(trial) > 0)
    queue.pending.push_front(trial);
  else if (was_to_be)
    return detail::format("trial {} goes on", trial);
  else if (!is_continued(trial))
    fail(Errc::usage, "trial {} was not paused by hand: it is {}", trial, to_string(trials()[trial].state));
  return detail::format("trial {} goes on as soon as there is room", trial);
}

std::string Controller::pause_all() {
  auto& queue = dispatcher_.queue();
  if (queue.all_paused) return "it is paused already";
  queue.all_paused = true;
  return detail::format("no trial starts; {} running trial{} at the next report", running(),
                        running() == 1 ? " pauses" : "s pause");
}

std::string Controller::continue_all() {
  auto& queue = dispatcher_.queue();
  if (!queue.all_paused && queue.user_paused.empty() && queue.to_pause.empty())
    fail(Errc::usage, "nothing was paused by hand");
  queue.all_paused = false;
  queue.to_pause.clear();
  const auto waiting = std::exchange(queue.user_paused, {});
  queue.pending.insert(queue.pending.begin(), waiting.begin(), waiting.end());
  return detail::format("goes on: {} trial{} had paused", waiting.size(), waiting.size() == 1 ? "" : "s");
}

std::string Controller::add(const Params& params, Seconds now, Outcome& out) {
  judge_.set_now(now);
  Point point = judge_.state().space().configuration(params);
  const TrialId trial = trials().size();
  Params all = judge_.state().space().params(point);
  std::string text = fmt::to_string(all);
  judge_.add(std::move(point), std::move(all), out);
  dispatcher_.queue().pending.push_back(trial);
  return detail::format("trial {} is to try {}", trial, text);
}

std::string Controller::note(TrialId trial, const Attributes& attributes, Seconds now, Outcome& out) {
  judge_.set_now(now);
  return judge_.note(trial, attributes, out);
}

std::string Controller::resize_trial(TrialId trial, int wanted, Seconds now, Outcome& out) {
  judge_.set_now(now);
  require_open(trial);
  const Workers& workers = rules().workers;
  if (!workers.elastic())
    fail(Errc::usage, "the trials of this experiment always have {} worker{}: its `workers` has no min and max",
         workers.min, workers.min == 1 ? "" : "s");
  if (wanted != 0 && (wanted < workers.min || wanted > workers.max))
    fail(Errc::usage, "a trial has {} to {} workers, not {}", workers.min, workers.max, wanted);
  judge_.ask_workers(trial, wanted, true, out);
  dispatcher_.forget_restart(trial);
  const std::string number = wanted == 0 ? "as many workers as there is room for"
                                         : detail::format("{} worker{}", wanted, wanted == 1 ? "" : "s");
  const LiveTrial* const run = dispatcher_.find(trial);
  if (run == nullptr) return detail::format("trial {} is to start with {}", trial, number);
  if (run->allocation.workers() == wanted) return detail::format("trial {} has {} already", trial, number);
  if (run->fixed)
    return detail::format("trial {} begins again with {} after a report with a checkpoint, as far as there is room{}",
                          trial, number, state().restorable(trial).empty() ? "; it has made no checkpoint so far" : "");
  return detail::format("trial {} goes on with {} after its next report, as far as there is room", trial, number);
}

}  // namespace hypertune::inline v0
