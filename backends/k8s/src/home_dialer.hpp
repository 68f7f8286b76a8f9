// HomeDialer: an agent in a worker's pod, which connects to the driver by itself.
#pragma once

#include "pod_dialer.hpp"
#include "pod_fleet.hpp"

#include <hypertune/k8s/agent_listener.hpp>
#include <hypertune/remote/dialer.hpp>

#include <memory>
#include <stop_token>
#include <string>

namespace hypertune::inline v0::k8s {

/// For drivers that are pods themselves: see CallHomeDialer. Copies are one dialer.
class HomeDialer {
 public:
  /// `prepare` brings what an agent needs, before it is started; the command that it returns is the pod's own business.
  /// `patience`: seconds for which a pod may run without connecting; then the error says so, as one that lasts.
  HomeDialer(std::shared_ptr<PodFleet> fleet, AgentListener listener, std::string worker, PrepareAgent prepare,
             Seconds patience);

  /// Waits for the worker's pod for as long as it takes, and then for its connection, unless the pod
  /// ends.
  remote::AgentStream dial(const std::stop_token& stop) const;
  remote::FailureClass classify(const std::string& said) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hypertune::inline v0::k8s
