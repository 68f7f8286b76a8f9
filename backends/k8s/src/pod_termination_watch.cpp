// PodTerminationWatch: watches this program's own pod.
#include "pod_termination_watch.hpp"

#include "pod_state.hpp"

#include <hypertune/detail/signal_block.hpp>

#include <boost/json/object.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <utility>

namespace hypertune::inline v0::k8s {

PodTerminationWatch::PodTerminationWatch(Client client, const std::string& pod,
                                         std::function<void(const std::string&)> say)
    : say_(std::move(say)) {
  watch_ = client.watch({.path = api_path({"api", "v1", "namespaces", client.name_space(), "pods"}),
                         .field_selector = fmt::format("metadata.name={}", pod)},
                        [this](const WatchEvent& event) { see(event); });
  const hypertune::detail::SignalBlock block;
  thread_ = std::jthread([this](const std::stop_token& stop) { wait(stop); });
}

void PodTerminationWatch::see(const WatchEvent& event) {
  if (event.object == nullptr) return;
  const auto state = pod_state(*event.object, {});
  const std::lock_guard lock(mutex_);
  if (uid_.empty()) uid_ = state.uid;
  const bool gone = event.kind == WatchEvent::Kind::deleted || state.uid != uid_;
  if (grace_ || (!gone && !state.deleted)) return;
  grace_ = gone ? 0 : static_cast<Seconds>(state.grace);
  changed_.notify_all();
}

void PodTerminationWatch::wait(const std::stop_token& stop) {
  constexpr Seconds node_takes = 5, more = 10;
  std::unique_lock lock(mutex_);
  const auto sleep = [&](Seconds seconds) {
    changed_.wait_for(lock, stop, std::chrono::duration<double>(seconds), [] { return false; });
    return !stop.stop_requested();
  };
  if (!changed_.wait(lock, stop, [&] { return grace_.has_value(); }) || !sleep(node_takes)) return;
  say_("the pod of this driver is deleted: the experiment is saved, for the driver that takes its place");
  ::kill(::getpid(), SIGHUP);
  if (sleep(*grace_ + more)) ::kill(::getpid(), SIGKILL);
}

}  // namespace hypertune::inline v0::k8s
