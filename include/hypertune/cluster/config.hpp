// CLUSTER.yaml: what machines a cluster has, how they are reached and what is done to them first.
#pragma once

#include <hypertune/config/shape.hpp>
#include <hypertune/config/yaml.hpp>
#include <hypertune/files/file_mount.hpp>
#include <hypertune/trial/resources.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::cluster {

/// Whether machines of a type may be taken away at any time, at a lower price.
enum class Spot : std::uint8_t {
  never,   ///< on-demand only
  prefer,  ///< spot, and on-demand where there is none
  only,    ///< spot, or nothing
};

/// A kind of machine.
struct NodeType {
  std::string name;
  Resources resources = {};      ///< what trials can use of one
  bool resources_known = false;  ///< the file says so; else one machine tells when it is up
  int min_workers = 0;
  int max_workers = 0;
  std::string node_config = "{}";  ///< JSON: what the provider is given, as it stands in the file
  double price = 0;                ///< on-demand, per hour, in any currency; 0: not known
  std::optional<double> spot_price;
  Spot spot = Spot::never;
  std::vector<std::string> setup_commands;  ///< worker_setup_commands of this type, in place of the cluster's
  bool own_setup_commands = false;
  int line = 0;
  int config_line = 0;  ///< of node_config
};

struct Auth {
  std::string ssh_user;  ///< empty: what the user's ssh configuration says
  std::filesystem::path ssh_private_key, ssh_public_key, ssh_config;
  std::string ssh_proxy_command;
};

struct ProviderConfig {
  std::string type;     ///< local, command, aws or kubernetes
  std::string head_ip;  ///< local
  std::vector<std::string> worker_ips;
  std::vector<std::string> command;             ///< command: the program and its arguments
  std::string settings = "{}";                  ///< command: JSON, handed to the program as it stands
  std::string region, endpoint_url, profile;    ///< aws
  std::vector<std::string> availability_zones;  ///< aws
  std::string name_space, context;              ///< kubernetes
  std::filesystem::path kubeconfig;             ///< kubernetes
  std::string service_account;                  ///< kubernetes: of the head, which reaches the other pods by it
  bool use_internal_ips = false, cache_stopped_nodes = false;
  double timeout = 300;              ///< seconds that one call of the provider may take
  double start_timeout = 600;        ///< seconds until a machine must be reachable
  bool trust_new_host_keys = false;  ///< the first key that a machine shows is believed
  int line = 0;
};

struct ClusterConfig {
  std::filesystem::path file;
  std::string name;
  ProviderConfig provider;
  Auth auth;
  std::vector<NodeType> types;
  std::size_t head_type = 0;  ///< index into types
  int min_workers = 0, max_workers = 0;
  double upscaling_speed = 1;
  double idle_timeout = 300;  ///< seconds
  std::vector<std::string> initialization_commands, setup_commands, head_setup_commands, worker_setup_commands;
  std::vector<FileMount> file_mounts;  ///< what every machine gets, by absolute paths of this one
  std::vector<std::string> rsync_exclude, rsync_filter;
  std::string currency = "USD";
  std::vector<std::string> warnings;  ///< one line each, for the user

  const NodeType& head() const { return types.at(head_type); }
  /// nullptr if there is none of this name.
  const NodeType* find_type(std::string_view type) const {
    for (const auto& candidate : types)
      if (candidate.name == type) return &candidate;
    return nullptr;
  }
};

/// What a command line says in place of the file.
struct ClusterOverrides {
  std::string name;
  std::optional<int> min_workers, max_workers;
};

/// Error of kind `input` with line and key for anything that makes no sense. Relative paths are taken from `folder`.
/// Keys of Ray's launcher that mean nothing here are named in one of the `warnings`.
ClusterConfig cluster_from_yaml(const Node& root, const std::filesystem::path& folder = ".",
                                const ClusterOverrides& overrides = {});

ClusterConfig load_cluster(const std::filesystem::path& file, const ClusterOverrides& overrides = {});

/// What the file may say, as a whole.
Shape cluster_shape();

/// A YAML value as JSON text: numbers and true/false where the file has them without quotes.
std::string json_of(const Node& node);

}  // namespace hypertune::inline v0::cluster
