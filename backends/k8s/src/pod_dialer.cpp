// PodDialer: starts an agent in a pod, and classifies how it ended.
#include "pod_dialer.hpp"

#include "channel_frames.hpp"
#include "pod_log.hpp"
#include "silent_end.hpp"

#include <hypertune/remote/host_error.hpp>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::k8s {

using remote::DialError;
using remote::FailureClass;

DialError dial_error(const ApiError& error, const std::string& pod, PodFleet& fleet, const std::stop_token& stop) {
  if (stop.stop_requested()) return DialError(FailureClass::transient, "it is not needed any more");
  // Without an answer the API server was not reached. Otherwise the pod is gone, or its node does not answer.
  if (error.status() != 0)
    if (auto end = fleet.find_end_error(pod, stop)) return *std::move(end);
  const bool denied = error.status() == 401 || error.status() == 403;
  if (error.status() != 0 && error.status() != 429 && !denied) fleet.discard(pod, error.code() == Errc::io);
  return DialError(denied ? FailureClass::permanent : FailureClass::transient,
                   fmt::format("pod {}: {}", pod, error.what()), error.code());
}

namespace {

bool has_any(const std::string& said, std::initializer_list<std::string_view> texts) {
  return std::any_of(texts.begin(), texts.end(), [&](auto text) { return said.find(text) != std::string::npos; });
}
bool is_ended_container(const std::string& said) {
  return has_any(said,
                 {"cannot exec in a stopped state", "cannot exec in a deleted state", "no running task",
                  "container is not created or running", "container not created", "no such container", "not running",
                  // containerd, if its task of that name is gone
                  "failed to create exec"});
}

// The API server accepts an exec before the node tries to start the command; the node's error message arrives after
// that, on a busy node seconds later. It is only peeked at here. Empty: the agent has begun to talk, or there is no
// message yet.
std::string said_at_start(const remote::AgentStream& stream, const std::stop_token& stop) {
  std::array<pollfd, 2> ends{{{.fd = stream.from.get(), .events = POLLIN, .revents = 0},
                              {.fd = stream.err.get(), .events = POLLIN, .revents = 0}}};
  const std::stop_callback on_stop(stop, [&] { ::shutdown(stream.from.get(), SHUT_RD); });  // ends the poll
  constexpr int until_a_silent_one_is_returned = 5000;
  const int ready = ::poll(ends.data(), ends.size(), until_a_silent_one_is_returned);
  if (stop.stop_requested()) throw DialError(FailureClass::transient, "it is not needed any more");
  if (ready <= 0 || (ends[1].revents & POLLIN) == 0) return {};
  std::array<char, 4096> bytes;
  const auto size = ::recv(stream.err.get(), bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  return {bytes.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

}  // namespace

struct PodDialer::State {
  std::shared_ptr<PodFleet> fleet;
  std::string worker;
  PrepareAgent prepare;
  std::string pod = {};  // of the last dial()
};

PodDialer::PodDialer(std::shared_ptr<PodFleet> fleet, std::string worker, PrepareAgent prepare)
    : state_(std::make_shared<State>()) {
  state_->fleet = std::move(fleet);
  state_->worker = std::move(worker);
  state_->prepare = std::move(prepare);
}

remote::AgentStream PodDialer::dial(const std::stop_token& stop) const {
  auto& state = *state_;
  const auto pod = state.fleet->acquire(state.worker, stop);
  state.pod = pod.name;
  try {
    const auto command = state.prepare(pod, stop);
    constexpr Seconds deadline = 15;
    auto stream = state.fleet->client().open_stream(
        {.pod = pod.name, .command = command, .container = state.fleet->container()}, stop, deadline);
    const auto said = said_at_start(stream, stop);
    const bool killed = has_any(said, {"exit code 137"});  // with its container, if that ended as the agent started
    if (killed || said.starts_with(detail::not_run)) {
      // The node knows that the container has ended, and updates the pod's status a second or two later.
      const Seconds moment = killed || is_ended_container(said) ? 10 : 1;
      if (auto end = state.fleet->find_end_error(pod.name, stop, moment)) throw *std::move(end);
    }
    // A stream that ended may have been closed by the API server, with the pod still running. But if the stream went
    // silent and was given up, the pod's node does not answer, and Kubernetes may notice that much later.
    return watch_for_silence(std::move(stream), [fleet = state.fleet, name = pod.name] { fleet->discard(name, true); });
  } catch (const remote::HostError& error) {
    throw DialError(failure_of(error.problem()), error.what(), error.code());
  } catch (const ApiError& error) { throw dial_error(error, pod.name, *state.fleet, stop); }
}

FailureClass PodDialer::classify(const std::string& said) const {
  if (is_node_trouble(said)) state_->fleet->discard(state_->pod, true);
  return classify_exec(said);
}

std::string PodDialer::explain(const std::string& said) const {
  if (is_node_trouble(said)) return "the node of its pod does not answer, or has ended the pod";
  return explain_exec(said);
}

std::string explain_exec(const std::string& said) {
  // The program was copied and checked. "Not found" then means the loader or a library that it needs to start.
  if (has_any(said, {"/cache/bin/"}) && has_any(said, {"not found", "No such file"}) && !has_any(said, {".so"}))
    return "its image lacks what starts the program that was sent into it, the loader or the C library: take an image "
           "with the libraries that `ldd` lists of the program (" +
           end_of_text(said) + ")";
  return end_of_text(said);
}

bool is_node_trouble(const std::string& said) {
  // Messages of an API server that cannot reach the kubelet, and of a kubelet whose container is gone.
  return is_ended_container(said) ||
         has_any(said, {"error sending request", "error dialing backend", "dial tcp", "container not found"});
}

FailureClass classify_exec(const std::string& said) {
  if (is_node_trouble(said)) return FailureClass::transient;
  if (has_any(said, {"error while loading shared libraries", "exec format error", "Exec format error",
                     "no such file or directory", "executable file not found", "permission denied", "exit code 126",
                     "exit code 127", "unable to start container process"}))
    return FailureClass::permanent;
  // The API server has ended meanwhile, or the connection to it.
  return has_any(said, {"connection", "EOF", "timed out", "timeout"}) ? FailureClass::transient : FailureClass::unknown;
}

}  // namespace hypertune::inline v0::k8s
