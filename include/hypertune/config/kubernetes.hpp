// executor: {type: kubernetes, …} from YAML.
#pragma once

#include <hypertune/config/executor_keys.hpp>
#include <hypertune/config/file_mounts.hpp>
#include <hypertune/config/kubernetes_options.hpp>
#include <hypertune/config/options.hpp>
#include <hypertune/config/pod_check.hpp>
#include <hypertune/config/shape_check.hpp>
#include <hypertune/config/transfer.hpp>
#include <hypertune/config/yaml_json.hpp>

namespace hypertune::inline v0::detail {

inline KubernetesOptions kubernetes_from_yaml(const Node& node) {
  KubernetesOptions kubernetes;
  if (!node.is_map()) return kubernetes;
  check_keys(node, kubernetes_keys());
  read_known_options(node, kubernetes);
  if (const auto pool = node.find("pool")) kubernetes.pool = pool_size_from_yaml(*pool);
  if (const auto selector = node.find("node_selector"))
    for (const auto& [label, value] : selector->entries()) kubernetes.node_selector[label] = value.written();
  if (const auto mounts = node.find("file_mounts")) kubernetes.file_mounts = file_mounts_from_yaml(*mounts);
  if (const auto transfer = node.find("transfer")) kubernetes.transfer = transfer_from_yaml(*transfer);
  if (const auto pod = node.find("pod")) {
    check_pod(*pod);
    JsonWriter json(JsonFor::file);
    kubernetes.pod = put_yaml(json, *pod).take();  // is valid YAML, too
  }
  checked(node, [&] {
    check_options(kubernetes);
    return 0;
  });
  return kubernetes;
}

}  // namespace hypertune::inline v0::detail
