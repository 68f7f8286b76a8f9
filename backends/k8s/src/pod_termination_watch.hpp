// PodTerminationWatch: ends this program when its pod is to end but its node cannot tell it.
#pragma once

#include <hypertune/k8s/client.hpp>
#include <hypertune/trial/trial.hpp>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

namespace hypertune::inline v0::k8s {

/// Watches this program's own pod. A deleted pod gets SIGTERM from its node; on a node whose kubelet does not answer it
/// keeps running, and so would a driver whose Job has replaced it. PodTerminationWatch therefore signals this process
/// itself: a while later by SIGHUP, which has no effect if SIGTERM did arrive (see SignalWatch), and by SIGKILL when
/// the pod's grace period is over, as the node would.
class PodTerminationWatch {
 public:
  /// `say` receives lines for the user.
  PodTerminationWatch(Client client, const std::string& pod, std::function<void(const std::string&)> say);
  PodTerminationWatch(const PodTerminationWatch&) = delete;
  PodTerminationWatch& operator=(const PodTerminationWatch&) = delete;

 private:
  void see(const WatchEvent& event);
  void wait(const std::stop_token& stop);

  std::function<void(const std::string&)> say_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::string uid_;               // of this pod: the first one seen with that name
  std::optional<Seconds> grace_;  // set once it is to end: its grace period
  Watch watch_;
  std::jthread thread_;  // last, so that it ends first
};

}  // namespace hypertune::inline v0::k8s
