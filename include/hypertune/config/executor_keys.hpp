// The keys of `executor:`, as tables for its readers, docs/sweep.md and `hypertune schema`.
#pragma once

#include <hypertune/config/shape.hpp>

namespace hypertune::inline v0 {

/// The shape of `executor:`: a name, or a map with keys by `type`.
Shape executor_shape();

namespace detail {

/// The pattern by which an editor validates a network: "10.1.0.0/16", "fd00::/8".
inline constexpr const char* network_pattern = "^[0-9a-fA-F.:]+/[0-9]{1,3}$";

const Keys& local_keys();
const Keys& ssh_keys();
const Keys& slurm_keys();
const Keys& kubernetes_keys();
const Keys& pod_keys();
const Keys& host_keys();         ///< of an entry of `hosts`
const Keys& host_source_keys();  ///< of `hosts` that come from a file or a command
const Keys& file_mount_keys();
const Keys& transfer_keys();
const Keys& shared_keys();

}  // namespace detail
}  // namespace hypertune::inline v0
