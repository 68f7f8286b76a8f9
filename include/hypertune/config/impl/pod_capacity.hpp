// What a worker that is a pod has.
#pragma once

#include <hypertune/config/pod_capacity.hpp>
#include <hypertune/detail/parse_number.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

namespace hypertune::inline v0 {
namespace detail {

std::optional<double> quantity_of(std::string_view text) {
  constexpr std::pair<std::string_view, double> suffixes[] = {
      {"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50},
      {"Ei", 0x1p60}, {"n", 1e-9},    {"u", 1e-6},    {"m", 1e-3},    {"k", 1e3},
      {"M", 1e6},     {"G", 1e9},     {"T", 1e12},    {"P", 1e15},    {"E", 1e18}};
  if (text.starts_with('+')) text.remove_prefix(1);
  double unit = 1;
  for (const auto& [suffix, factor] : suffixes)
    if (text.ends_with(suffix)) {
      text.remove_suffix(suffix.size());
      unit = factor;
      break;
    }
  const auto number = parse_number<double>(text);
  if (!number || !std::isfinite(*number) || *number < 0) return std::nullopt;
  return *number * unit;
}

std::optional<double> asked_by_pod(const Node& pod, std::string_view resource, std::string_view first) {
  const auto map_in = [](const std::optional<Node>& node, std::string_view key) -> std::optional<Node> {
    if (!node || !node->is_map()) return std::nullopt;
    auto found = node->find(key);
    return found && found->is_map() ? found : std::nullopt;
  };
  const auto spec = map_in(pod, "spec");
  if (!spec) return std::nullopt;
  std::optional<Node> container;
  if (const auto all = spec->find("containers"); all && all->is_list())
    for (const auto& each : all->items()) {
      if (!each.is_map()) continue;
      const auto name = each.find("name");
      const bool ours = name && name->is_scalar() && name->as<std::string>() == "worker";
      if (ours || !container) container = each;
      if (ours) break;
    }
  for (const auto& owner : {container, spec})
    for (const std::string_view kind : {first, std::string_view(first == "requests" ? "limits" : "requests")})
      if (const auto amounts = map_in(map_in(owner, "resources"), kind))
        if (const auto amount = amounts->find(resource); amount && amount->is_scalar())
          if (const auto quantity = quantity_of(amount->as<std::string>()); quantity && *quantity > 0) return quantity;
  return std::nullopt;
}

}  // namespace detail

Resources capacity_of(const KubernetesOptions& options) {
  Resources room{.cpus = options.cpus.value_or(1), .gpus = static_cast<double>(options.gpus), .memory = options.memory};
  if (options.pod.empty() || (options.cpus && options.memory > 0)) return room;
  const auto pod = load_yaml_text(options.pod, "executor.pod");
  if (!pod.is_map()) return room;
  constexpr double max_bytes = 0x1p62;
  if (!options.cpus) room.cpus = detail::asked_by_pod(pod, "cpu").value_or(1);
  if (options.memory == 0)
    if (const auto memory = detail::asked_by_pod(pod, "memory", "limits"); memory && *memory < max_bytes)
      room.memory = static_cast<std::uint64_t>(*memory);
  return room;
}

}  // namespace hypertune::inline v0
