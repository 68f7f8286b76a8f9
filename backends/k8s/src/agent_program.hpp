// AgentProgram: the program that runs in a worker's pod, and how it gets there.
#pragma once

#include <hypertune/hosts/host_options.hpp>
#include <hypertune/k8s/client.hpp>
#include <hypertune/k8s/executor.hpp>
#include <hypertune/trial/resources.hpp>

#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::k8s {

/// A value. Thread-safe.
class AgentProgram {
 public:
  /// Error of kind `usage` if there is no program to send.
  AgentProgram(const KubernetesSetup& setup, Client client);

  /// The resources of one worker.
  Resources resources() const;
  /// The command of the pod's container, which keeps the pod running for agents.
  std::vector<std::string> container_command() const;
  /// Copies to the pod what is missing there. Returns the command that starts an agent there. Blocks.
  std::vector<std::string> prepare(const std::string& pod, const std::string& container,
                                   const std::stop_token& stop) const;

 private:
  remote::HostOptions limits() const;
  std::vector<std::string> in_image_as(std::string_view role) const;

  KubernetesSetup setup_;
  Client client_;
};

}  // namespace hypertune::inline v0::k8s
