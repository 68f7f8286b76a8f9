// executor: {type: kubernetes, …} from YAML.
#pragma once

#include <hypertune/config/executor_keys.hpp>
#include <hypertune/config/file_mounts.hpp>
#include <hypertune/config/kubernetes_options.hpp>
#include <hypertune/config/options.hpp>
#include <hypertune/config/pod_check.hpp>
#include <hypertune/config/shape_check.hpp>
#include <hypertune/config/transfer.hpp>
#include <hypertune/config/yaml.hpp>
#include <hypertune/record/json_text.hpp>

#include <string>
#include <utility>

namespace hypertune::inline v0::detail {

/// Appends a node and its children as JSON, which is valid YAML too.
inline void append_json_of(std::string& out, const Node& node) {
  const char* separator = "";
  if (node.is_map()) {
    out += '{';
    for (const auto& [key, value] : node.entries()) {
      out += std::exchange(separator, ", ");
      append_json(out, key);
      out += ": ";
      append_json_of(out, value);
    }
    out += '}';
  } else if (node.is_list()) {
    out += '[';
    for (const auto& item : node.items()) {
      out += std::exchange(separator, ", ");
      append_json_of(out, item);
    }
    out += ']';
  } else if (node.is_null()) {
    out += "null";
  } else {
    const Value value = node.scalar();
    const auto* real = std::get_if<double>(&value);
    real != nullptr ? append_json(out, *real) : append_json(out, value);  // 1.0 is 1, as kubectl sends it
  }
}

inline KubernetesOptions kubernetes_from_yaml(const Node& node) {
  KubernetesOptions kubernetes;
  if (!node.is_map()) return kubernetes;
  check_keys(node, kubernetes_keys());
  read_known_options(node, kubernetes);
  if (const auto workers = node.find("workers")) kubernetes.workers = worker_count_from_yaml(*workers);
  if (const auto selector = node.find("node_selector"))
    for (const auto& [label, value] : selector->entries()) kubernetes.node_selector[label] = value.written();
  if (const auto mounts = node.find("file_mounts")) kubernetes.file_mounts = file_mounts_from_yaml(*mounts);
  if (const auto transfer = node.find("transfer")) kubernetes.transfer = transfer_from_yaml(*transfer);
  if (const auto pod = node.find("pod")) {
    check_pod(*pod);
    append_json_of(kubernetes.pod, *pod);
  }
  checked(node, [&] {
    check_options(kubernetes);
    return 0;
  });
  return kubernetes;
}

}  // namespace hypertune::inline v0::detail
