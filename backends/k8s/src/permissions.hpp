// Permissions: all that hypertune asks of an API server, in one table.
#pragma once

#include "preflight.hpp"

#include <cstdint>
#include <vector>

namespace hypertune::inline v0::k8s {

/// What an account is used for.
enum class Use : std::uint16_t {
  workers = 1U << 0U,        ///< the pods of an experiment
  exec = 1U << 1U,           ///< their agents are reached by exec
  files = 1U << 2U,          ///< files are copied into them
  direct = 1U << 3U,         ///< they connect to the driver
  owner_job = 1U << 4U,      ///< a driver outside of the cluster: see OwnerJob
  job = 1U << 5U,            ///< a driver that is the pod of a Job
  submitted_job = 1U << 6U,  ///< … of one that `submit --kubernetes` has made
  submit = 1U << 7U,         ///< submits such a Job, follows it and deletes it
  new_claim = 1U << 8U,      ///< … with a volume claim that is made for it
  read_record = 1U << 9U,    ///< looks into the record of such a Job
  machines = 1U << 10U,      ///< pods as machines of a cluster
  claims = 1U << 12U,        ///< GPUs of a DeviceClass (`gpu_class`)
  resize = 1U << 14U,        ///< workers that run out of memory get more (`max_memory`)
  groups = 1U << 13U,        ///< pods of a trial that are placed all or none
  forward = 1U << 11U,       ///< ports of those
};

/// All that these uses need, each once. Everything that is used is here: it is asked for before anything is made, the
/// Roles of deploy/kubernetes allow it, and tests compare all three.
std::vector<Permission> permissions_for(const std::vector<Use>& uses);

}  // namespace hypertune::inline v0::k8s
