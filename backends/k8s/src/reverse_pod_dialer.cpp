// ReversePodDialer: agents that connect to their driver.
#include "reverse_pod_dialer.hpp"

#include "silent_end.hpp"

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/remote/host_error.hpp>

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace hypertune::inline v0::k8s {

struct ReversePodDialer::State {
  State(std::shared_ptr<PodFleet> pods, AgentListener door, std::string name, PrepareAgent files, Seconds seconds)
      : fleet(std::move(pods)),
        listener(std::move(door)),
        worker(std::move(name)),
        prepare(std::move(files)),
        patience(seconds) {}

  std::shared_ptr<PodFleet> fleet;
  AgentListener listener;
  std::string worker;
  PrepareAgent prepare;
  Seconds patience;
  std::string pod = {};                      // the pod whose connection is awaited
  std::optional<ReverseDialer> dialer = {};  // for that pod only: another pod's connection is not used for it
};

ReversePodDialer::ReversePodDialer(std::shared_ptr<PodFleet> fleet, AgentListener listener, std::string worker,
                                   PrepareAgent prepare, Seconds patience)
    : state_(std::make_shared<State>(std::move(fleet), std::move(listener), std::move(worker), std::move(prepare),
                                     patience)) {}

remote::AgentStream ReversePodDialer::dial(const std::stop_token& stop) const {
  auto& state = *state_;
  const auto expect = [&](const std::string& pod) {
    if (pod == state.pod && state.dialer) return;
    state.dialer.reset();
    state.pod = pod;
    constexpr Seconds more = 10;  // `check` below reports the end of the patience first
    state.dialer.emplace(state.listener, pod, state.patience + more,
                         [fleet = state.fleet, pod] { fleet->started(pod); });
  };
  const auto pod = state.fleet->acquire(state.worker, stop, expect);
  expect(pod.name);
  try {
    state.prepare(pod, stop);
    const Seconds until = hypertune::detail::steady_seconds() + state.patience;
    const auto check = [&]() -> std::optional<remote::DialError> {
      if (auto end = state.fleet->find_end_error(pod.name, stop, 0)) return end;
      if (hypertune::detail::steady_seconds() < until) return std::nullopt;
      return remote::DialError(
          remote::FailureClass::permanent,
          fmt::format(
              "its pod {} runs, but has not connected to port {} of this driver within {:g} s: a network policy "
              "may be in the way, or its program is not one that serves trials{}",
              pod.name, state.listener.port(), state.patience, state.fleet->log_tail(pod.name, stop)));
    };
    return watch_for_silence(state.dialer->dial(stop, check),
                             [fleet = state.fleet, name = pod.name] { fleet->discard(name, true); });
  } catch (const remote::HostError& error) {
    throw remote::DialError(failure_of(error.problem()), error.what(), error.code());
  } catch (const ApiError& error) {
    throw dial_error(error, pod.name, *state.fleet, stop);
  } catch (const remote::DialError&) {
    if (!stop.stop_requested()) state.fleet->discard(pod.name, true);  // this pod is of no use
    throw;
  }
}

remote::FailureClass ReversePodDialer::classify(const std::string& said) const {
  return state_->dialer ? state_->dialer->classify(said) : remote::FailureClass::unknown;
}

}  // namespace hypertune::inline v0::k8s
