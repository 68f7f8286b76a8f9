// OwnPod: the pod in which this program runs, if it runs in one.
#pragma once

#include "pod_manifest.hpp"

#include <hypertune/k8s/client.hpp>

#include <optional>
#include <stop_token>
#include <string>

namespace hypertune::inline v0::k8s {

struct OwnPod {
  std::string name, ip;
  Owner owner;  ///< the Job that made the pod, so that what it owns outlives the pod; else the pod itself
};

/// Looks for it in the client's namespace. Nullopt: this is no pod of that namespace, or its account may not read it.
std::optional<OwnPod> find_own_pod(Client client, const std::stop_token& stop = {});

}  // namespace hypertune::inline v0::k8s
