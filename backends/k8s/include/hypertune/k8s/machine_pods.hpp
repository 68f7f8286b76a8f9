// MachinePods: pods that stay until they are deleted, as machines of a cluster that commands and trials are sent to.
#pragma once

#include <hypertune/config/kubernetes_options.hpp>
#include <hypertune/hosts/host_spec.hpp>
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

/// A label of all pods of a cluster: its name.
inline constexpr std::string_view cluster_label = "hypertune/cluster";

/// Meant for designated initialisers.
struct MachinePodsOptions {
  std::string cluster = {};  ///< its name, which has to be a value of a label
  std::string name_space = {};
  std::filesystem::path kubeconfig = {};
  std::string context = {};
  /// Of the head, so that what runs there may reach the other pods. Empty: it has none.
  std::string service_account = {};
};

/// What one pod is to be.
struct MachinePodWish {
  std::string token;         ///< letters, digits and '-': one pod is made for it, however often it is asked for
  std::string node_type;     ///< value of a label
  std::string node_config;   ///< a pod in Kubernetes' own words, as JSON
  std::string title;         ///< of that, for messages: "c.yaml:12: 'available_node_types.gpu.node_config'"
  Resources resources = {};  ///< what the pod says itself has the last word
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
  std::string sentence = {};  ///< what it waits for: follows its name
  /// Somebody has to mend something before it can run (an image that cannot be pulled), as likely as not, or surely.
  bool doubtful = false, hopeless = false;
};

/// Errors are ApiError and Error; what the account may not do is an Error of kind `usage` that names the rule to add.
/// Thread-safe; copies are the same.
class MachinePods {
 public:
  /// Reads the credentials, and connects to nobody. In a pod of this very cluster they are those of its account.
  explicit MachinePods(MachinePodsOptions options);

  /// Those of the cluster, whoever made them, but those that have ended.
  std::vector<MachinePod> list(const std::stop_token& stop = {}) const;
  /// Makes one; the one that is there where it was made before. What the account needs for all of this is asked before
  /// the first.
  MachinePod create(const MachinePodWish& wish, const std::stop_token& stop = {}) const;
  /// Ends pods; those that are not there are no error.
  void remove(const std::vector<std::string>& names, const std::stop_token& stop = {}) const;
  /// Deletes the pods of the cluster that have ended by themselves. Returns how many.
  int remove_ended(const std::stop_token& stop = {}) const;
  /// How a pod that list() does not show has ended, and what it said last; empty: nothing is known of it.
  std::string explain(const std::string& name, const std::stop_token& stop = {}) const;

  /// Scripts in a pod that runs. `stop` ends the waiting for its first answer.
  remote::HostShell shell(const std::string& name, const std::stop_token& stop = {}) const;
  /// See Client::run_foreground().
  int run_foreground(const std::string& name, std::vector<std::string> command, const Foreground& streams,
                     const std::stop_token& stop = {}) const;
  /// See Client::forward().
  PortForward forward(const std::string& name, std::uint16_t port, std::uint16_t local) const;
  /// Whether the account may forward ports; Error of kind `usage` otherwise.
  void require_forward() const;
  /// Agents in a pod: what `files` says is brought there for each.
  remote::AnyDialer dialer(const std::string& name, remote::AgentFiles files, HostSpec limits) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hypertune::inline v0::k8s
