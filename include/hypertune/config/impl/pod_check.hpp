// The keys of a pod.
#pragma once

#include <hypertune/config/executor_keys.hpp>
#include <hypertune/config/pod_check.hpp>
#include <hypertune/config/shape_check.hpp>
#include <hypertune/detail/nearest.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::detail {

/// The keys of PodSpec in the core API, v1.37.
inline const std::vector<std::string_view>& keys_of_pods() {
  static const std::vector<std::string_view> keys{"activeDeadlineSeconds",
                                                  "affinity",
                                                  "automountServiceAccountToken",
                                                  "containers",
                                                  "dnsConfig",
                                                  "dnsPolicy",
                                                  "enableServiceLinks",
                                                  "ephemeralContainers",
                                                  "evictionResponders",
                                                  "hostAliases",
                                                  "hostIPC",
                                                  "hostNetwork",
                                                  "hostPID",
                                                  "hostUsers",
                                                  "hostname",
                                                  "hostnameOverride",
                                                  "imagePullSecrets",
                                                  "initContainers",
                                                  "nodeName",
                                                  "nodeSelector",
                                                  "os",
                                                  "overhead",
                                                  "preemptionPolicy",
                                                  "priority",
                                                  "priorityClassName",
                                                  "readinessGates",
                                                  "resourceClaims",
                                                  "resources",
                                                  "restartPolicy",
                                                  "runtimeClassName",
                                                  "schedulerName",
                                                  "schedulingGates",
                                                  "schedulingGroup",
                                                  "securityContext",
                                                  "serviceAccount",
                                                  "serviceAccountName",
                                                  "setHostnameAsFQDN",
                                                  "shareProcessNamespace",
                                                  "subdomain",
                                                  "terminationGracePeriodSeconds",
                                                  "tolerations",
                                                  "topologySpreadConstraints",
                                                  "volumes"};
  return keys;
}
inline const std::vector<std::string_view>& keys_of_containers() {
  static const std::vector<std::string_view> keys{"args",
                                                  "command",
                                                  "env",
                                                  "envFrom",
                                                  "image",
                                                  "imagePullPolicy",
                                                  "lifecycle",
                                                  "livenessProbe",
                                                  "name",
                                                  "ports",
                                                  "readinessProbe",
                                                  "resizePolicy",
                                                  "resources",
                                                  "restartPolicy",
                                                  "restartPolicyRules",
                                                  "securityContext",
                                                  "startupProbe",
                                                  "stdin",
                                                  "stdinOnce",
                                                  "terminationMessagePath",
                                                  "terminationMessagePolicy",
                                                  "tty",
                                                  "volumeDevices",
                                                  "volumeMounts",
                                                  "workingDir"};
  return keys;
}

inline void check_slips(const Node& map, const std::vector<std::string_view>& known) {
  for (const auto& [key, value] : map.entries()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    if (!nearest(key, known).empty()) value.fail("unknown key '{}' in {}{}", key, map.title(), suggestion(key, known));
  }
}

void check_pod_slips(const Node& spec) {
  check_slips(spec, keys_of_pods());
  for (const char* list : {"containers", "initContainers", "ephemeralContainers"}) {
    const auto containers = spec.find(list);
    if (!containers || !containers->is_list()) continue;
    for (const auto& each : containers->items())
      if (each.is_map()) check_slips(each, keys_of_containers());
  }
}

void check_pod(const Node& pod) {
  const auto name = [&](std::string_view key) {
    return pod.path().empty() ? fmt::format("'{}'", key) : fmt::format("'{}' in '{}'", key, pod.path());
  };
  if (!pod.is_map())
    pod.fail("{} must be a pod (a map with 'spec'), not {}",
             pod.path().empty() ? "the text" : fmt::format("'{}'", pod.path()), pod.kind_text());
  check_keys(pod, pod_keys());
  for (const char* key : {"metadata", "spec"})
    if (const auto part = pod.find(key); part && !part->is_null() && !part->is_map())
      part->fail("{} must be a map, not {}", name(key), part->kind_text());
  const auto spec = pod.find("spec");
  if (!spec || !spec->is_map()) return;
  if (const auto containers = spec->find("containers"); containers && !containers->is_null()) {
    if (!containers->is_list())
      containers->fail("{} must be a list of containers, not {}", name("spec.containers"), containers->kind_text());
    for (const auto& each : containers->items())
      if (!each.is_map())
        each.fail("{} must be a list of containers (maps with 'name'), and has {}", name("spec.containers"),
                  each.kind_text());
  }
  check_pod_slips(*spec);
}

}  // namespace hypertune::inline v0::detail
