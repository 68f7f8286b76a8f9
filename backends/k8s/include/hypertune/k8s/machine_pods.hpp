// MachinePods: pods that stay until they are deleted, used as the machines of a cluster for commands and trials.
#pragma once

#include <hypertune/config/kubernetes_options.hpp>
#include <hypertune/hosts/host_options.hpp>
#include <hypertune/k8s/client.hpp>
#include <hypertune/remote/agent_files.hpp>
#include <hypertune/remote/dialer.hpp>
#include <hypertune/remote/host_shell.hpp>
#include <hypertune/trial/resources.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::k8s {

/// A label of all pods of a cluster; its value is the cluster's name.
inline constexpr std::string_view cluster_label = "hypertune/cluster";

/// Meant for designated initialisers.
struct MachinePodsOptions {
  std::string cluster = {};  ///< its name, which must be a valid label value
  std::string name_space = {};
  std::filesystem::path kubeconfig = {};
  std::string context = {};
  /// Of the head's pod, which lets it reach the other pods. Empty: none.
  std::string service_account = {};
};

/// Describes a pod to be made.
struct MachinePodRequest {
  std::string token;         ///< letters, digits and '-'; one pod is made for it, even if create() is called again
  std::string node_type;     ///< value of a label
  std::string node_config;   ///< the pod as a Kubernetes object in JSON
  std::string title;         ///< its source, for messages: "c.yaml:12: 'available_node_types.gpu.node_config'"
  Resources resources = {};  ///< used where the pod itself does not say
  bool head = false;
  KubernetesOptions::Spot spot = KubernetesOptions::Spot::any;
};

/// A pod of the cluster that has not ended.
struct MachinePod {
  enum class Phase : std::uint8_t { waiting, running, leaving };
  std::string name, token, node_type;
  bool head = false, spot = false;
  Phase phase = Phase::waiting;
  std::string address = {};   ///< empty: it has none yet
  std::string sentence = {};  ///< what it waits for, to be printed after its name
  /// Before it can run, someone has to correct something (an image that cannot be pulled): probably, or certainly.
  bool may_need_fix = false, cannot_start = false;
};

/// Errors are ApiError and Error. An action that the account may not do is an Error of kind `usage` that names the rule
/// to add. Thread-safe; copies are the same object.
class MachinePods {
 public:
  /// Reads the credentials; makes no connection. In a pod of this cluster they are those of its service account.
  explicit MachinePods(MachinePodsOptions options);

  /// The cluster's pods, whoever made them, without those that have ended.
  std::vector<MachinePod> list(const std::stop_token& stop = {}) const;
  /// Makes a pod; returns the existing one if it was made before. Before the first one it checks that the account has
  /// all the permissions it needs.
  MachinePod create(const MachinePodRequest& pod_spec, const std::stop_token& stop = {}) const;
  /// Deletes pods; a pod that does not exist is no error.
  void remove(const std::vector<std::string>& names, const std::stop_token& stop = {}) const;
  /// Deletes the pods of the cluster that have ended by themselves. Returns how many.
  int remove_ended(const std::stop_token& stop = {}) const;
  /// How a pod that list() does not show has ended, and the last lines of its log; empty: unknown.
  std::string explain(const std::string& name, const std::stop_token& stop = {}) const;

  /// Runs scripts in a running pod. `stop` ends the wait for its first answer.
  remote::HostShell shell(const std::string& name, const std::stop_token& stop = {}) const;
  /// See Client::run_foreground().
  int run_foreground(const std::string& name, std::vector<std::string> command, const Foreground& streams,
                     const std::stop_token& stop = {}) const;
  /// See Client::forward().
  PortForward forward(const std::string& name, std::uint16_t port, std::uint16_t local) const;
  /// Whether the account may forward ports; Error of kind `usage` otherwise.
  void require_forward() const;
  /// Starts agents in a pod, each after copying there what `files` names.
  remote::AnyDialer dialer(const std::string& name, remote::AgentFiles files, HostOptions limits) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hypertune::inline v0::k8s
