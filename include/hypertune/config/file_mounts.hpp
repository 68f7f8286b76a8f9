// Reads `file_mounts:` from YAML, for all executors with remote workers.
#pragma once

#include <hypertune/config/executor_keys.hpp>
#include <hypertune/config/shape_check.hpp>
#include <hypertune/config/yaml.hpp>
#include <hypertune/files/file_mount.hpp>

#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

/// file_mounts: {~/code: ./code, data: {from: /data/set, exclude: ["*.tmp"]}}
inline std::vector<FileMount> file_mounts_from_yaml(const Node& node) {
  std::vector<FileMount> mounts;
  for (const auto& [remote, value] : node.entries()) {
    FileMount mount{.remote = remote, .local = {}, .exclude = {}};
    if (value.is_map()) {
      check_values(value, file_mount_keys());
      mount.local = value["from"].as<std::string>();
      if (const auto exclude = value.find("exclude")) mount.exclude = exclude->texts();
    } else {
      mount.local = value.as<std::string>();
    }
    if (remote.empty() || remote == "~" || remote == "/")
      value.fail("'{}' cannot be mounted to: name a file or folder below it", remote);
    if (mount.local.empty()) value.fail("'{}' is empty: name a file or folder of this machine", value.path());
    for (const auto& other : mounts) {
      const std::string& longer = other.remote.size() > remote.size() ? other.remote : remote;
      const std::string& shorter = other.remote.size() > remote.size() ? remote : other.remote;
      if (longer.starts_with(shorter + "/"))
        value.fail("'{}' lies within the file mount '{}': mount them beside each other", longer, shorter);
    }
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

}  // namespace hypertune::inline v0::detail
