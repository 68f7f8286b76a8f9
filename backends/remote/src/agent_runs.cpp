// Agent: commands of the driver, and events of the local executor.
#include "agent_state.hpp"

#include <hypertune/detail/format.hpp>
#include <hypertune/net/spawn.hpp>

#include <filesystem>
#include <string>
#include <utility>

namespace hypertune::inline v0::remote::detail {

void Agent::on(Launch& m) {
  if (m.parked) {
    if (const auto found = runs_.find(key_of(m)); found != runs_.end() && found->second->launch.attempt == m.attempt) {
      const auto& run = found->second;
      run->parked = false;
      run->launch.allocation.lead = m.allocation.lead;
      executor_.perform(std::move(m));
    }
    return;
  }
  const auto run = std::make_shared<Run>();
  run->launch = std::move(m);
  run->log =
      LogTail(folder_->path() / "trials" / std::to_string(run->launch.trial) / log_name(key_of(run->launch).second),
              begin_->log_limit);
  if (const auto old = runs_.find(key_of(run->launch)); old != runs_.end()) forget(RunPointer(old->second));
  runs_[key_of(run->launch)] = run;
  logs_.raise();
  resolve(run);
}

void Agent::on(const Continue& m) {
  const auto run = find(m);
  if (!run) return;
  // A trial that saves faster than its checkpoints can be copied is slowed down.
  if (m.save && run->copies >= copies_ahead)
    run->held = m;
  else
    executor_.perform(m);
}

void Agent::on(const Pause& m) {
  if (find(m)) executor_.perform(m);
}

void Agent::on(const Stop& m) {
  const auto run = find(m);
  if (!run) return;
  run->held.reset();
  if (run->resolving) {
    channel_->send(Stopped{m.trial, m.attempt, m.member});
    return forget(run);
  }
  executor_.perform(m);
  if (run->parked) forget(run);
}

void Agent::on(GroupMessage& m) {
  if (find(m)) executor_.perform(std::move(m));
}

// ---- Events ----

void Agent::tell(Event event) {
  if (left_) return;
  std::visit([this](auto& e) { on_event(e); }, event);
}

void Agent::on_event(Started& e) {
  if (const auto run = find(e)) {
    run->damaged.clear();
    if (!std::exchange(run->started, true)) channel_->send(e);  // only once, even if repair() has restarted it
  }
}

void Agent::on_event(Reported& e) {
  const auto run = find(e);
  if (!run) return;
  unpin(run);
  const auto made = std::exchange(e.checkpoint, std::nullopt);
  channel_->send(e);
  if (made) offer(run, *made);
}

void Agent::on_event(Checkpointed& e) {
  if (const auto run = find(e)) offer(run, e.checkpoint);
}

void Agent::on_event(CheckpointLost& e) {
  for (auto run = runs_.lower_bound(RunKey(e.trial, 0)); run != runs_.end() && run->first.first == e.trial; ++run)
    if (!run->second->launch.seat || !run->second->started) run->second->damaged = e.why;
  channel_->send(Notice{hypertune::detail::format("trial {}: its copy of checkpoint {} on host '{}' is damaged: {}",
                                                  e.trial, e.checkpoint.name, host_name_, e.why)});
}

void Agent::on_event(Failed& e) {
  if (const auto kills = count_memory_kills(); kills > std::exchange(memory_kills_, kills))
    e.cause.text.insert(0, memory_was_used_up);
  const auto run = find(e);
  if (run && run->damaged.empty() && run->pinned && !may_be_there(*store_, *run->pinned))
    run->damaged = "it vanished before it was read";
  if (run && !run->damaged.empty()) return repair(run);
  // A signal that ends all processes of a host, a job or a pod may reach the trial first. If the agent ends next, the
  // host is lost and the trial has not failed. Not for groups: their failures are compared, so the first one must be
  // reported at once.
  if (run && !run->launch.seat && e.cause.source == FailureSource::infrastructure)
    run->send_not_before = steady_now() + follow_up_delay;
  last(e);
}

// The end of an attempt is sent after its log and its checkpoints.
void Agent::tell_end(const RunPointer& run) {
  if (!run->last || run->over || run->copies > 0 || steady_now() < run->send_not_before || !send_log(*run)) return;
  const wire::Message message = *std::exchange(run->last, std::nullopt);
  channel_->send(message);
  unpin(run);
  if (const auto* paused = std::get_if<Paused>(&message); paused != nullptr && paused->parked) {
    run->parked = true;
    return;
  }
  const TrialId trial = run->launch.trial;
  const bool over = std::holds_alternative<Finished>(message) || std::holds_alternative<Stopped>(message);
  run->log.remove();
  forget(run);
  if (!over) return;
  cache_->forget(trial);
  if (exchange_) hypertune::detail::run_apart(*disk_, [this, trial] { exchange_->drop_partial(trial); });
}

void Agent::forget(const RunPointer& run) {
  run->over = true;
  unpin(run);
  const auto found = runs_.find(key_of(run->launch));
  if (found != runs_.end() && found->second == run) runs_.erase(found);
}

void Agent::unpin(const RunPointer& run) {
  if (const auto pinned = std::exchange(run->pinned, std::nullopt)) cache_->unpin(*pinned);
}

// ---- Logs ----

asio::awaitable<void> Agent::follow_logs() {
  for (;;) {
    const auto runs = runs_;
    for (const auto& [key, run] : runs) {
      if (run->resolving || run->over) continue;
      if (run->last)
        tell_end(run);
      else
        send_log(*run);
    }
    const double pause = runs_.empty() ? Wakeup::for_ever : 0.05;
    co_await logs_.wait(pause);
  }
}

// Returns whether the whole log so far was sent.
bool Agent::send_log(Run& run) {
  while (channel_->backlog() < quiet) {
    std::string text = run.log.read();
    if (text.empty()) return true;
    channel_->send(wire::LogPiece{run.launch.trial, run.launch.attempt, std::move(text), key_of(run.launch).second});
  }
  return false;
}

}  // namespace hypertune::inline v0::remote::detail
