// PodDialer: starts an agent in a worker's pod, by the API server's exec.
#pragma once

#include "pod_fleet.hpp"

#include <hypertune/remote/dialer.hpp>

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace hypertune::inline v0::k8s {

/// Makes a pod ready for an agent; returns the agent's command.
using PrepareAgent = std::function<std::vector<std::string>(const PodState& pod, const std::stop_token& stop)>;

/// Copies are one dialer.
class PodDialer {
 public:
  PodDialer(std::shared_ptr<PodFleet> fleet, std::string worker, PrepareAgent prepare);

  /// Waits for the worker's pod without a time limit.
  remote::AgentStream dial(const std::stop_token& stop) const;
  remote::FailureClass classify(const std::string& said) const;
  std::string explain(const std::string& said) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Converts a failed call about the worker's pod; discards the pod if it is of no use any more.
remote::DialError dial_error(const ApiError& error, const std::string& pod, PodFleet& fleet,
                             const std::stop_token& stop);

/// Whether further attempts make sense after a command in a pod ended before the agent spoke, judged by the messages of
/// the command and of the node.
remote::FailureClass classify_exec(const std::string& said);

/// The same messages as one line for people. For a program that was copied into the pod.
std::string explain_exec(const std::string& said);

/// Whether the cause was the pod's node, or the end of the pod. Then the pod is of no use any more.
bool is_node_trouble(const std::string& said);

}  // namespace hypertune::inline v0::k8s
