// Agents that connect to their driver.
#include "home_dialer.hpp"

#include "silent_end.hpp"

#include <hypertune/remote/host_error.hpp>

#include <atomic>
#include <optional>
#include <utility>

namespace hypertune::inline v0::k8s {

struct HomeDialer::State {
  State(std::shared_ptr<PodFleet> pods, AgentListener door, std::string name, PrepareAgent files)
      : fleet(std::move(pods)), listener(std::move(door)), worker(std::move(name)), prepare(std::move(files)) {}

  std::shared_ptr<PodFleet> fleet;
  AgentListener listener;
  std::string worker;
  PrepareAgent prepare;
  std::string pod = {};                     // whose connection is waited for
  std::optional<CallHomeDialer> home = {};  // of that pod: no other one's connection is taken for it
  std::atomic<bool> spent = false;          // nothing is to be expected of that pod
};

HomeDialer::HomeDialer(std::shared_ptr<PodFleet> fleet, AgentListener listener, std::string worker,
                       PrepareAgent prepare)
    : state_(std::make_shared<State>(std::move(fleet), std::move(listener), std::move(worker), std::move(prepare))) {}

remote::AgentStream HomeDialer::dial(const std::stop_token& stop) const {
  auto& state = *state_;
  if (state.spent.exchange(false) && !state.pod.empty()) state.fleet->discard(state.pod, true);
  constexpr double patience = 20;
  const auto expect = [&](const std::string& pod) {
    if (pod == state.pod && state.home) return;
    state.home.reset();
    state.pod = pod;
    state.home.emplace(state.listener, pod, patience);
  };
  const auto pod = state.fleet->acquire(state.worker, stop, expect);
  expect(pod.name);
  try {
    state.prepare(pod, stop);
    return watch_for_silence(state.home->dial(stop), [shared = state_] { shared->spent = true; });
  } catch (const remote::HostError& error) {
    throw remote::DialError(failure_of(error.problem()), error.what(), error.code());
  } catch (const ApiError& error) {
    throw dial_error(error, pod.name, *state.fleet, stop);
  } catch (const remote::DialError& error) {
    if (stop.stop_requested()) throw;
    state.spent = true;
    throw remote::DialError(error.failure(), error.what() + state.fleet->last_words(pod.name, stop), error.code());
  }
}

remote::FailureClass HomeDialer::classify(const std::string& said) const {
  return state_->home ? state_->home->classify(said) : remote::FailureClass::unknown;
}

}  // namespace hypertune::inline v0::k8s
