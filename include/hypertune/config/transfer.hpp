// Reads `transfer:` from YAML, for all executors with remote workers.
#pragma once

#include <hypertune/config/executor_keys.hpp>
#include <hypertune/config/options.hpp>
#include <hypertune/config/shape_check.hpp>
#include <hypertune/config/yaml.hpp>
#include <hypertune/hosts/checkpoint_transfer.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace hypertune::inline v0::detail {

/// shared: true | /path/on/the/hosts | {folder: /nfs/checkpoints, on_hosts: /mnt/checkpoints}
inline std::optional<SharedCheckpoints> shared_from_yaml(const Node& node) {
  SharedCheckpoints shared;
  const auto on_hosts = [&](const Node& place) {
    shared.on_hosts = place.as<std::string>();
    if (!shared.on_hosts.starts_with('/') && !shared.on_hosts.starts_with("~/"))
      place.fail("'{}' must be a folder of the hosts: an absolute path, or one below '~/', not '{}'", place.path(),
                 shared.on_hosts);
  };
  if (node.is_map()) {
    check_values(node, shared_keys());
    if (const auto folder = node.find("folder")) {
      shared.folder = folder->as<std::string>();
      if (shared.folder.empty()) folder->fail("'{}' is empty: name a folder of this machine", folder->path());
    }
    if (const auto place = node.find("on_hosts")) on_hosts(*place);
  } else if (const auto text = node.as<std::string>(); text == "true" || text == "false") {
    if (!node.as<bool>()) return std::nullopt;
  } else {
    on_hosts(node);
  }
  return shared;
}

/// transfer: {direct: true, network: 10.1.0.0/16, port: 7070, rate_limit: 50MB, shared: true}
inline CheckpointTransfer transfer_from_yaml(const Node& node) {
  CheckpointTransfer transfer;
  check_values(node, transfer_keys());
  read_known_options(node, transfer);
  if (const auto port = node.find("port")) transfer.port = port->as<std::uint16_t>();
  if (const auto shared = node.find("shared")) transfer.shared = shared_from_yaml(*shared);
  return checked(node, [&] { return check_options(transfer), transfer; });
}

}  // namespace hypertune::inline v0::detail
