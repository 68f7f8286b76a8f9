// The parts of a CLUSTER.yaml that concern pods (kubernetes).
#pragma once

#include <hypertune/cluster/config.hpp>
#include <hypertune/config/yaml.hpp>

#include <filesystem>
#include <string>

namespace hypertune::inline v0::cluster::detail {

/// Reads the keys of `provider` that only kubernetes has.
void read_pods_provider(const Node& node, const std::filesystem::path& folder, ProviderConfig& provider);

/// Checks a cluster's name, which is used as the value of a label. `node`: its place in the file, for errors.
void check_pods_name(const Node& node, const std::string& name);

/// Reads the `node_config` of a node type (`entry`), which must be a pod. Resources that the type does not give are
/// taken from the pod's requests. Error of kind `input` with line and key.
void read_pod_type(const Node& entry, NodeType& type);

/// A Kubernetes quantity ("500m", "2", "4Gi", "1e3"). Error of kind `input` if it is not one.
double quantity_of(const Node& node);

/// A path on this machine: "~/x", or relative to a folder.
std::filesystem::path local_path(const std::string& text, const std::filesystem::path& folder);

}  // namespace hypertune::inline v0::cluster::detail
