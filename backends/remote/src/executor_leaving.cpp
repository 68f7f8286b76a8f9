// RemoteExecutor: hosts that go away with notice.
#include "executor_state.hpp"

namespace hypertune::inline v0::remote {

void RemoteExecutor::State::drain(const LinkPointer& link, const std::string& why, double seconds, bool for_good) {
  const bool known = link->machine.draining();
  step(link, [&](HostStateMachine& m) { return m.drain(why, for_good); });
  if (known) return;  // already draining; it may have become `for_good`
  if (!link->machine.draining()) return;
  // A trial that can stop at any time (a command) is asked to leave at once. The others save only between steps, so
  // they get time to finish the current one, as far as there is some.
  const bool at_once = started_ && start_.program->stop_grace() > 0;
  const double grace = seconds > 0 ? std::min(options_.notice_grace, seconds / 2) : options_.notice_grace;
  link->save_by = detail::steady_now() + (at_once ? 0 : grace);
  std::map<std::pair<TrialId, Attempt>, std::vector<int>> of_groups;
  for (auto& [run, route] : link->routes) {
    if (route.seated && !route.parked) of_groups[{run.first, route.attempt}].push_back(run.second);
    if (!route.parked) continue;
    link->connection->channel->send(Stop{run.first, route.attempt, false, run.second});
    route.lost = why;
  }
  const Cause cause{
      .source = FailureSource::preemption,
      .text = hypertune::detail::format("{} goes away: {}", hypertune::detail::host_text(link->spec.name), why)};
  for (auto& [attempt, members] : of_groups)
    groups_.on_loss(attempt.first, attempt.second, std::move(members), cause, true);
  groups_.work();
  leave_if_empty(link);
  arm(link);
}

void RemoteExecutor::State::ask_to_leave(const LinkPointer& link, RunKey run, Route& route) {
  if (route.parked || route.stopping || route.leaving) return;
  route.leaving = true;
  route.waiting = false;
  link->connection->channel->send(Stop{run.first, route.attempt, true, run.second});
}

// The host's only attempt has ended. The host is drained before that end is reported, so that nothing else is placed on
// it.
void RemoteExecutor::State::retire_host(const LinkPointer& link) {
  const bool up = link->machine.up();
  const std::string why = up ? "it has run its trial" : link->machine.problem();
  pool_.retire(link->spec.name, why);
  if (up)
    drain(link, why, 0, true);
  else
    link->machine.drain(why, true);  // the loss is reported next
}

void RemoteExecutor::State::leave_if_empty(const LinkPointer& link) {
  if (!link->machine.draining()) return;
  if (std::any_of(link->routes.begin(), link->routes.end(), [](const auto& r) { return !r.second.parked; })) return;
  step(link, [](HostStateMachine& m) { return m.drained(detail::steady_now()); });
}

}  // namespace hypertune::inline v0::remote
