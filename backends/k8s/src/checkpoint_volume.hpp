// The volume that workers and driver share for checkpoints: where it is mounted, and a check that the driver has it.
#pragma once

#include <hypertune/config/kubernetes_options.hpp>
#include <hypertune/error.hpp>

#include <filesystem>
#include <string>
#include <system_error>

namespace hypertune::inline v0::k8s {

inline constexpr const char* volume_place = "/hypertune-checkpoints";
inline constexpr const char* volume_name = "hypertune-checkpoints";  ///< in a pod's spec

/// Where `options.volume` is mounted in a worker's pod.
inline std::string volume_in_workers(const KubernetesOptions& options) {
  const auto& shared = options.transfer.shared;
  return shared && !shared->on_hosts.empty() ? shared->on_hosts : volume_place;
}

/// Where it is mounted in the driver, also in a pod that is made for the driver.
inline std::filesystem::path volume_in_driver(const KubernetesOptions& options) {
  const auto& shared = options.transfer.shared;
  return shared && !shared->folder.empty() ? shared->folder : std::filesystem::path(volume_place);
}

/// How checkpoints are transferred. Error of kind `usage` if the driver does not have the volume.
inline CheckpointTransfer transfer_of(const KubernetesOptions& options) {
  auto transfer = options.transfer;
  if (options.volume.empty()) return transfer;
  const auto folder = volume_in_driver(options);
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored))
    fail(Errc::usage,
         "executor.volume: this driver does not have the volume of '{}', as there is no folder '{}' here: let the "
         "driver be a pod that has it (hypertune submit --kubernetes), or say where that volume is mounted here "
         "(transfer: {{shared: {{folder: /nfs/checkpoints}}}})",
         options.volume, folder.string());
  transfer.shared = {.folder = folder, .on_hosts = volume_in_workers(options)};
  return transfer;
}

}  // namespace hypertune::inline v0::k8s
