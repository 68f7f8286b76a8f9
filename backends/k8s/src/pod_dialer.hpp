// PodDialer: an agent in a worker's pod, by the API server's exec.
#pragma once

#include "pod_fleet.hpp"

#include <hypertune/remote/dialer.hpp>

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace hypertune::inline v0::k8s {

/// What runs as an agent in a pod: the command, once the program is there.
using PrepareAgent = std::function<std::vector<std::string>(const PodState& pod, const std::stop_token& stop)>;

/// Copies are one dialer.
class PodDialer {
 public:
  PodDialer(std::shared_ptr<PodFleet> fleet, std::string worker, PrepareAgent prepare);

  /// Waits for the worker's pod for as long as it takes.
  remote::AgentStream dial(const std::stop_token& stop) const;
  remote::FailureClass classify(const std::string& said) const;
  std::string explain(const std::string& said) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// What it means for the worker that a call about its pod has failed; a pod that is of no use any more is discarded.
remote::DialError dial_error(const ApiError& error, const std::string& pod, PodFleet& fleet,
                             const std::stop_token& stop);

/// What it means for further attempts that a command in a pod ended before the agent spoke, by what it said and what
/// the node said of it.
remote::FailureClass classify_exec(const std::string& said);

/// The same as one line for people, of the program that is sent into pods.
std::string explain_exec(const std::string& said);

/// Whether that was the doing of the pod's node, or of its end: the pod is of no use any more.
bool is_node_trouble(const std::string& said);

}  // namespace hypertune::inline v0::k8s
