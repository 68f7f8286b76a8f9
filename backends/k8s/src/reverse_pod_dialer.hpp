// ReversePodDialer: starts an agent in a worker's pod that connects to the driver.
#pragma once

#include "pod_dialer.hpp"
#include "pod_fleet.hpp"

#include <hypertune/k8s/agent_listener.hpp>
#include <hypertune/remote/dialer.hpp>

#include <memory>
#include <stop_token>
#include <string>

namespace hypertune::inline v0::k8s {

/// For drivers that run in a pod themselves: see ReverseDialer. Copies are one dialer.
class ReversePodDialer {
 public:
  /// `prepare` copies what an agent needs, before it is started; the command that it returns is not used, as the pod
  /// starts its own. `patience`: seconds for which a pod may run without connecting; after that the error is a
  /// permanent one.
  ReversePodDialer(std::shared_ptr<PodFleet> fleet, AgentListener listener, std::string worker, PrepareAgent prepare,
                   Seconds patience);

  /// Waits for the worker's pod without a time limit, then for its connection, unless the pod ends.
  remote::AgentStream dial(const std::stop_token& stop) const;
  remote::FailureClass classify(const std::string& said) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hypertune::inline v0::k8s
