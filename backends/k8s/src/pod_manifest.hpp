// Manifests: what a worker's pod looks like to Kubernetes. No I/O.
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
/// Where the driver is, for pods that connect to it.
inline constexpr std::string_view driver_annotation = "hypertune/driver";
inline constexpr std::string_view avoids_annotation = "hypertune/avoids";  ///< nodes that the pod is kept away from
/// The folder of a worker's own in its pod, on a volume that ends with the pod.
inline constexpr std::string_view pod_folder = "/hypertune";
/// Where agents leave their numbers for the pod's first process.
inline constexpr std::string_view agents_folder = "/hypertune/agents";
/// The name of the container in which trials run, where the template has none.
inline constexpr std::string_view container_name = "worker";

/// Whoever owns an object: that goes when the owner does.
struct Owner {
  std::string api_version, kind, name, uid;
};

/// What makes one pod differ from those beside it.
struct PodPlan {
  std::string name;        ///< of the pod
  std::string experiment;  ///< value of the label
  std::string worker;      ///< likewise
  std::optional<Owner> owner = {};
  std::vector<std::string> command;           ///< of the container; empty: that of the image
  std::vector<std::string> avoid_nodes = {};  ///< where pods have been lost a short while ago
  /// Of pods that connect to the driver: where it is, and the secret that has the token under the key "token".
  std::string driver = {}, secret = {};
  std::string title = "executor.pod";  ///< where the template is from, for messages
};

/// A manifest in JSON. The options are put into their `pod`, whose own words win where both say something, but for what
/// the worker needs to be one (labels, owner, restart policy, command). Error of kind `input` or `usage` for a `pod`
/// that is no pod.
boost::json::object pod_manifest(const KubernetesOptions& options, const PodPlan& plan);

/// Options that make no sense, a `pod` among them: said before anything is asked of a cluster. A pod that came as a map
/// of a file was judged there, by the same check_pod(), with its line in the file.
void check_workers(const KubernetesOptions& options);

/// The name of the container in which the worker runs: the template's `worker`, or its first one, or container_name.
std::string container_of(const KubernetesOptions& options);

/// Where trials run; the container makes it.
std::string work_folder(const KubernetesOptions& options);

/// A name that Kubernetes takes for objects and labels, made of any text: "My sweep!" is "my-sweep". At most `most`
/// characters; never empty.
std::string kubernetes_name(std::string_view text, std::size_t most = 40);

}  // namespace hypertune::inline v0::k8s
