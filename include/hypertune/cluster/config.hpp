// CLUSTER.yaml: which machines a cluster has, how they are reached and how they are set up.
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

/// Whether machines of a type are spot machines: cheaper, but the provider may take them away at any time.
enum class Spot : std::uint8_t {
  never,   ///< on-demand only
  prefer,  ///< spot, and on-demand while no spot machine is available
  only,    ///< spot only
};

/// A kind of machine.
struct NodeType {
  std::string name;
  Resources resources = {};      ///< what trials can use of one machine
  bool resources_known = false;  ///< given in the file; if not, taken from the first machine that is up
  int min_workers = 0;
  int max_workers = 0;                 ///< beside the head
  std::optional<double> idle_timeout;  ///< seconds; not given: the cluster's
  int priority = 0;                    ///< of types that serve equally well, the highest is launched first
  std::string node_config = "{}";      ///< JSON as in the file: passed to the provider
  double price = 0;                    ///< on-demand, per hour, in any currency; 0: not known
  std::optional<double> spot_price;
  Spot spot = Spot::never;
  std::vector<std::string> setup_commands;  ///< worker_setup_commands of this type, which replace the cluster's
  bool own_setup_commands = false;
  int line = 0;
  int config_line = 0;  ///< line of node_config
};

struct Auth {
  std::string ssh_user;  ///< empty: as in the user's ssh configuration
  std::filesystem::path ssh_private_key, ssh_public_key, ssh_config;
  std::string ssh_proxy_command;
};

struct ProviderConfig {
  std::string type;     ///< local, command, aws or kubernetes
  std::string head_ip;  ///< local
  std::vector<std::string> worker_ips;
  std::vector<std::string> command;             ///< command: the program and its arguments
  std::string settings = "{}";                  ///< command: JSON, passed to the program unchanged
  std::string region, endpoint_url, profile;    ///< aws
  std::vector<std::string> availability_zones;  ///< aws
  std::string name_space, context;              ///< kubernetes
  std::filesystem::path kubeconfig;             ///< kubernetes
  std::string service_account;                  ///< kubernetes: of the head, for its access to the other pods
  bool use_internal_ips = false, cache_stopped_nodes = false;
  double timeout = 300;              ///< seconds that one provider call may take
  double start_timeout = 600;        ///< seconds until a machine must be reachable
  bool trust_new_host_keys = false;  ///< the first key that a machine presents is accepted
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
  std::vector<FileMount> file_mounts;  ///< to copy to every machine; local paths are absolute
  std::vector<std::string> rsync_exclude, rsync_filter;
  std::string currency = "USD";
  std::vector<std::string> warnings;  ///< one line each, for the user

  const NodeType& head() const { return types.at(head_type); }
  /// nullptr if there is no type of this name.
  const NodeType* find_type(std::string_view type) const {
    for (const auto& candidate : types)
      if (candidate.name == type) return &candidate;
    return nullptr;
  }
};

/// Values given on the command line, which replace those of the file.
struct ClusterOverrides {
  std::string name;
  std::optional<int> min_workers, max_workers;
};

/// Error of kind `input` with line and key for any invalid value. Relative paths are relative to `folder`. Keys of
/// Ray's cluster launcher that have no meaning here are listed in one of the `warnings`.
ClusterConfig cluster_from_yaml(const Node& root, const std::filesystem::path& folder = ".",
                                const ClusterOverrides& overrides = {});

ClusterConfig load_cluster(const std::filesystem::path& file, const ClusterOverrides& overrides = {});

/// The allowed keys and values of the whole file.
Shape cluster_shape();

/// A YAML value as JSON text. Numbers and true/false without quotes stay numbers and booleans.
std::string json_of(const Node& node);

}  // namespace hypertune::inline v0::cluster
