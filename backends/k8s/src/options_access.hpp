// The access settings in KubernetesOptions.
#pragma once

#include <hypertune/config/kubernetes_options.hpp>
#include <hypertune/k8s/access.hpp>

namespace hypertune::inline v0::k8s {

inline AccessOptions access_of(const KubernetesOptions& options) {
  AccessOptions access{.context = options.context, .name_space = options.name_space};
  if (!options.kubeconfig.empty()) access.kubeconfig = {options.kubeconfig};
  return access;
}

}  // namespace hypertune::inline v0::k8s
