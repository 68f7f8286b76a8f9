// Manifests: the objects of a worker's pod in Kubernetes. No I/O.
#pragma once

#include <hypertune/config/kubernetes_options.hpp>

#include <boost/json/object.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::k8s {

inline constexpr std::string_view experiment_label = "hypertune/experiment";
inline constexpr std::string_view role_label = "hypertune/role";
inline constexpr std::string_view worker_label = "hypertune/worker";
/// The address of the driver, in pods that connect to it.
inline constexpr std::string_view driver_annotation = "hypertune/driver";
inline constexpr std::string_view avoids_annotation = "hypertune/avoids";  ///< nodes that the pod must not use
/// A folder in each worker's pod, on a volume that is deleted with the pod.
inline constexpr std::string_view pod_folder = "/hypertune";
/// The folder in which agents register their process ids for the pod's first process.
inline constexpr std::string_view agents_folder = "/hypertune/agents";
/// The name of the container in which trials run, if the template has none.
inline constexpr std::string_view container_name = "worker";

/// The owner of an object; the object is deleted when its owner is.
struct Owner {
  std::string api_version, kind, name, uid;
};
/// An entry of `ownerReferences`.
boost::json::object owner_reference(const Owner& owner);

/// What distinguishes one pod from the others.
struct PodPlan {
  std::string name;        ///< of the pod
  std::string experiment;  ///< value of the label
  std::string worker;      ///< likewise
  std::optional<Owner> owner = {};
  std::vector<std::string> command;           ///< of the container; empty: that of the image
  std::vector<std::string> avoid_nodes = {};  ///< nodes on which pods were lost recently
  /// In pods that connect to the driver: its address, and the Secret that has the token under the key "token".
  std::string driver = {}, secret = {};
  std::string claim_template = {};     ///< a ResourceClaimTemplate for its GPUs, if there is a `gpu_class`
  std::string group = {};              ///< a PodGroup of Kubernetes' scheduler, whose pods it places all or none
  std::string title = "executor.pod";  ///< where the template comes from, for messages
};

/// The manifest as JSON. The options are merged into their `pod`. If both set something, `pod` wins, except for what a
/// worker needs (labels, owner, restart policy, command). Error of kind `input` or `usage` for an invalid `pod`.
boost::json::object pod_manifest(const KubernetesOptions& options, const PodPlan& plan);

/// Throws an Error for options that make no sense, or an invalid `pod`, before the cluster is asked anything. A `pod`
/// that is a map in a configuration file was already checked there, by the same check_pod(), with its line in the file.
void check_workers(const KubernetesOptions& options);

/// The name of the container in which the worker runs: the template's `worker`, or its first one, or container_name.
std::string container_of(const KubernetesOptions& options);

/// The folder in which trials run; the container runtime creates it.
std::string work_folder(const KubernetesOptions& options);

/// Makes a valid name for objects and labels from any text: "My sweep!" becomes "my-sweep". At most `most` characters;
/// never empty.
std::string kubernetes_name(std::string_view text, std::size_t most = 40);

}  // namespace hypertune::inline v0::k8s
