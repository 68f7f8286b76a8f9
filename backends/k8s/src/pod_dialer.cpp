// How an agent comes to be in a pod, and what is made of its end.
#include "pod_dialer.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::k8s {

using remote::DialError;
using remote::FailureClass;

struct PodDialer::State {
  std::shared_ptr<PodFleet> fleet;
  std::string worker;
  PrepareAgent prepare;
  std::string pod = {};                   // the last one
  std::atomic<bool> fell_silent = false;  // its stream was given up, and had not ended
};

PodDialer::PodDialer(std::shared_ptr<PodFleet> fleet, std::string worker, PrepareAgent prepare)
    : state_(std::make_shared<State>()) {
  state_->fleet = std::move(fleet);
  state_->worker = std::move(worker);
  state_->prepare = std::move(prepare);
}

remote::AgentStream PodDialer::dial(const std::stop_token& stop) const {
  auto& state = *state_;
  // A stream that ended may be the API server's doing, and its pod goes on. One that was given up without an end is of
  // a node that does not answer, which Kubernetes may learn much later.
  if (state.fell_silent.exchange(false) && !state.pod.empty()) state.fleet->discard(state.pod, true);
  const auto pod = state.fleet->acquire(state.worker, stop);
  state.pod = pod.name;
  try {
    const auto command = state.prepare(pod, stop);
    constexpr Seconds deadline = 15;
    auto stream = state.fleet->client().open_stream(
        {.pod = pod.name, .command = command, .container = state.fleet->container()}, stop, deadline);
    const auto from = std::make_shared<remote::Descriptor>(::dup(stream.from.get()));
    auto carrier = std::make_shared<remote::StreamCarrier>(std::move(stream.carrier));
    stream.carrier = remote::StreamCarrier([shared = state_, from, carrier](double grace) {
      pollfd end{.fd = from->get(), .events = POLLRDHUP, .revents = 0};
      const bool ended = ::poll(&end, 1, 0) > 0 && (end.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
      shared->fell_silent = !ended;
      carrier->end(grace);
    });
    return stream;
  } catch (const ApiError& error) {
    if (stop.stop_requested()) throw DialError(FailureClass::transient, "it is not needed any more");
    // Who has no answer at all has not reached the API server. Else the pod is gone, or its node does not answer.
    const bool denied = error.status() == 401 || error.status() == 403;
    if (error.status() != 0 && error.status() != 429 && !denied)
      state.fleet->discard(pod.name, error.code() == Errc::io);
    throw DialError(denied ? FailureClass::permanent : FailureClass::transient,
                    fmt::format("pod {}: {}", pod.name, error.what()), error.code());
  }
}

FailureClass PodDialer::classify(const std::string& said) const { return classify_exec(said); }

FailureClass classify_exec(const std::string& said) {
  const auto has = [&](std::string_view text) { return said.find(text) != std::string::npos; };
  for (const char* lasting : {"error while loading shared libraries", "exec format error", "Exec format error",
                              "no such file or directory", "executable file not found", "permission denied",
                              "exit code 126", "exit code 127", "unable to start container process"})
    if (has(lasting)) return FailureClass::permanent;
  // The container or its node has ended meanwhile, or the API server.
  for (const char* passing : {"container not found", "connection", "not running", "EOF", "timed out", "timeout"})
    if (has(passing)) return FailureClass::transient;
  return FailureClass::unknown;
}

}  // namespace hypertune::inline v0::k8s
