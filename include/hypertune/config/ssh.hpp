// executor: {type: ssh, …} from YAML.
#pragma once

#include <hypertune/config/executor_keys.hpp>
#include <hypertune/config/file_mounts.hpp>
#include <hypertune/config/options.hpp>
#include <hypertune/config/shape_check.hpp>
#include <hypertune/config/ssh_spec.hpp>
#include <hypertune/config/transfer.hpp>
#include <hypertune/config/yaml.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

inline std::string ssh_host_name(const Node& node) {
  const auto name = node.as<std::string>();
  if (name.empty() || name.front() == '-' || name.find_first_of(" \t\n\r'\"\\`$;&|<>(){}*?!#,") != std::string::npos)
    node.fail("'{}' is not the name of a host", name);
  return name;
}

inline HostOptions ssh_host_from_yaml(const Node& node) {
  if (!node.is_map()) return {.name = ssh_host_name(node)};
  check_values(node, host_keys());
  HostOptions host{.name = ssh_host_name(node["name"])};
  read_known_options(node, host);
  if (const auto labels = node.find("labels")) {
    if (labels->is_map())
      for (const auto& [name, value] : labels->entries()) host.labels[name] = value.written();
    else
      for (const auto& name : labels->texts()) host.labels[name] = "";
  }
  return host;
}

/// hosts: [a, {name: b, slots: 2}] | {file: FILE} | {command: [PROGRAM, …], interval: 10s} | slurm
inline void ssh_hosts_from_yaml(const Node& node, SshSpec& ssh) {
  if (node.is_list()) {
    for (const auto& item : node.items()) {
      auto host = ssh_host_from_yaml(item);
      if (std::any_of(ssh.hosts.begin(), ssh.hosts.end(), [&](const auto& h) { return h.name == host.name; }))
        item.fail("host '{}' is listed twice: give it once, with slots: N for several trials", host.name);
      ssh.hosts.push_back(std::move(host));
    }
    if (ssh.hosts.empty()) node.fail("'{}' is empty: name a host", node.path());
  } else if (node.is_map()) {
    check_values(node, host_source_keys());
    if (node.has("file") == node.has("command"))
      node.fail("'{}' needs one of 'file' (one host a line) and 'command' (a program that prints them)", node.path());
    if (const auto file = node.find("file")) ssh.host_file = file->as<std::string>();
    if (const auto command = node.find("command")) {
      ssh.host_command = command->is_list() ? command->texts() : std::vector{command->as<std::string>()};
      if (ssh.host_command.empty() || ssh.host_command.front().empty())
        command->fail("'{}' is empty: it must name a program", command->path());
    }
    if (const auto interval = node.find("interval")) ssh.interval = interval->duration();
  } else if (node.as<std::string>() == "slurm") {
    ssh.slurm = true;
  } else {
    node.fail("'{}' must be a list of hosts, {{file: FILE}}, {{command: […]}} or slurm, not '{}'", node.path(),
              node.as<std::string>());
  }
}

/// cluster: CLUSTER.yaml describes the machines and how they are reached, so that other keys may not repeat that.
inline void ssh_cluster_from_yaml(const Node& node, SshSpec& ssh) {
  const Node cluster = node["cluster"];
  if (node.has("hosts"))
    cluster.fail("give 'hosts' or 'cluster', not both: the machines of a cluster are those of its file");
  for (const std::string_view key : {"ssh_config", "identity_file", "user", "port"})
    if (const auto given = node.find(key))
      given->fail("'{}' contradicts 'cluster': 'auth' of the cluster's file says how its machines are reached",
                  given->path());
  for (const std::string_view key : {"cpus", "gpus", "memory", "custom"})
    if (const auto given = node.find(key))
      given->fail("'{}' contradicts 'cluster': 'available_node_types' of the cluster's file say what a machine has",
                  given->path());
  if (ssh.cluster.empty()) cluster.fail("'{}' is empty: name the cluster's YAML file", cluster.path());
}

inline SshSpec ssh_from_yaml(const Node& node) {
  SshSpec ssh;
  const char* environment = std::getenv("HYPERTUNE_HOSTS");
  const bool given = node.is_map() && (node.has("hosts") || node.has("cluster"));
  if (!given && (environment == nullptr || *environment == '\0'))
    node.fail(
        "executor ssh needs 'hosts': [host1, host2], {{file: FILE}}, {{command: […]}} or slurm, or 'cluster': "
        "CLUSTER.yaml, or HYPERTUNE_HOSTS in the environment");
  if (!node.is_map()) return ssh;
  read_known_options(node, ssh);
  if (node.has("cluster"))
    ssh_cluster_from_yaml(node, ssh);
  else if (given)
    ssh_hosts_from_yaml(node["hosts"], ssh);
  if (const auto grow = node.find("grow"); grow && !node.has("cluster"))
    grow->fail("'{}' is for 'cluster': give that, too", grow->path());
  if (const auto user = node.find("user")) ssh_host_name(*user);
  if (const auto options = node.find("options")) {
    if (!options->is_map())
      ssh.options = options->texts();
    else
      for (const auto& [key, value] : options->entries()) ssh.options.push_back(key + "=" + value.as<std::string>());
  }
  if (const auto mounts = node.find("file_mounts")) ssh.file_mounts = file_mounts_from_yaml(*mounts);
  if (const auto transfer = node.find("transfer")) ssh.transfer = transfer_from_yaml(*transfer);
  return ssh;
}

}  // namespace hypertune::inline v0::detail
