// OwnEnd: that the pod of this program is to end, where its node cannot tell it.
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

/// Looks at this program's own pod for as long as it lives. A pod that is deleted gets SIGTERM from its node; on a node
/// whose kubelet does not answer it goes on, and so would a driver whose Job has replaced it. Such a driver tells
/// itself: a while later by SIGHUP, which says nothing new to who has had the other one (see SignalWatch), and when the
/// pod's grace is over it ends at once, as its node would end it.
class OwnEnd {
 public:
  /// `say` takes a line for the user.
  OwnEnd(Client client, const std::string& pod, std::function<void(const std::string&)> say);
  OwnEnd(const OwnEnd&) = delete;
  OwnEnd& operator=(const OwnEnd&) = delete;

 private:
  void see(const WatchEvent& event);
  void wait(const std::stop_token& stop);

  std::function<void(const std::string&)> say_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::string uid_;               // the first one of that name is this one
  std::optional<Seconds> grace_;  // it is to end, and has so long
  Watch watch_;
  std::jthread thread_;  // last: it ends first
};

}  // namespace hypertune::inline v0::k8s
