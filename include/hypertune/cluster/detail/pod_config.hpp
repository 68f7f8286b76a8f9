// What a CLUSTER.yaml says of machines that are pods.
#pragma once

#include <hypertune/cluster/config.hpp>
#include <hypertune/config/yaml.hpp>

#include <filesystem>
#include <string>

namespace hypertune::inline v0::cluster::detail {

/// The keys of `provider` that only kubernetes has.
void read_pods_provider(const Node& node, const std::filesystem::path& folder, ProviderConfig& provider);

/// A cluster's name is the value of a label. `node`: where it is from.
void check_pods_name(const Node& node, const std::string& name);

/// The `node_config` of a node type (`entry`): it must be a pod. What the type does not say of its resources is what
/// the pod asks for. Error of kind `input` with line and key.
void read_pod_type(const Node& entry, NodeType& type);

/// A quantity of Kubernetes ("500m", "2", "4Gi", "1e3"). Error of kind `input` for what is none.
double quantity_of(const Node& node);

/// A path of this machine: "~/x", or relative to a folder.
std::filesystem::path local_path(const std::string& text, const std::filesystem::path& folder);

}  // namespace hypertune::inline v0::cluster::detail
