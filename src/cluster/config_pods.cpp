// Parsing CLUSTER.yaml: machines that are pods.
#include <hypertune/cluster/detail/pod_config.hpp>
#include <hypertune/config/pod_capacity.hpp>
#include <hypertune/config/pod_check.hpp>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::cluster::detail {
namespace {

bool is_name(std::string_view text, bool dots) {
  const auto edge = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= (dots ? 253U : 63U) && edge(text.front()) && edge(text.back()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return edge(c) || c == '-' || (dots && c == '.'); });
}

bool is_label_value(std::string_view text) {
  const auto edge = [](unsigned char c) { return c < 0x80 && std::isalnum(c) != 0; };
  return !text.empty() && text.size() <= 63 && edge(static_cast<unsigned char>(text.front())) &&
         edge(static_cast<unsigned char>(text.back())) && std::all_of(text.begin(), text.end(), [&](unsigned char c) {
           return edge(c) || c == '-' || c == '_' || c == '.';
         });
}

std::optional<Node> map_in(const Node& node, std::string_view key) {
  auto found = node.find(key);
  if (!found || found->is_null()) return std::nullopt;
  if (!found->is_map()) found->fail("{} must be a map, not {}", found->title(), found->kind_text());
  return found;
}

// The container in which commands run: the one named `worker`, or else the first.
Node main_container(const Node& spec) {
  const auto containers = spec.find("containers");
  if (!containers || !containers->is_list() || containers->size() == 0)
    (containers ? *containers : spec)
        .fail("'{}' needs a list of containers: containers: [{{name: worker, image: IMAGE}}]", spec.path());
  const auto all = containers->items();
  std::optional<Node> main;
  for (const auto& each : all) {
    if (!each.is_map())
      each.fail("{} must be a container (a map with 'image'), not {}", each.title(), each.kind_text());
    const auto name = each.find("name");
    if (name && name->as<std::string>() == "worker") main = each;
  }
  return main.value_or(all.front());
}

// The amount of a resource that a container asks for: its limit, or else its request.
std::optional<Node> asked_for(const Node& container, std::string_view what) {
  const auto resources = map_in(container, "resources");
  if (!resources) return std::nullopt;
  for (const char* kind : {"limits", "requests"})
    if (const auto given = map_in(*resources, kind))
      if (const auto amount = given->find(what); amount && !amount->is_null()) return amount;
  return std::nullopt;
}

}  // namespace

double quantity_of(const Node& node) {
  const auto text = node.as<std::string>();
  const auto quantity = hypertune::detail::quantity_of(text);
  if (!quantity) node.fail("{} must be a quantity like 500m, 2 or 4Gi, not '{}'", node.title(), text);
  return *quantity;
}

void read_pods_provider(const Node& node, const std::filesystem::path& folder, ProviderConfig& provider) {
  const auto text = [&](const char* key) {
    const auto found = node.find(key);
    return found && !found->is_null() ? found->as<std::string>() : std::string();
  };
  const auto name = [&](const char* key, bool dots) {
    auto given = text(key);
    if (!given.empty() && !is_name(given, dots))
      node[key].fail("'provider.{}' is '{}', which is not a valid Kubernetes name (a-z, 0-9 and '-')", key, given);
    return given;
  };
  provider.name_space = name("namespace", false);
  provider.service_account = name("service_account", true);
  provider.context = text("context");
  if (const auto file = text("kubeconfig"); !file.empty()) provider.kubeconfig = local_path(file, folder);
}

void check_pods_name(const Node& node, const std::string& name) {
  if (!is_label_value(name))
    node.fail("the name of a cluster of pods is a label's value: '{}' must begin and end with a letter or a digit",
              name);
}

void read_pod_type(const Node& entry, NodeType& type) {
  if (!is_label_value(type.name))
    entry.fail("the name of a type of pods is a label's value (letters, digits, '-', '_', '.'), not '{}'", type.name);
  const auto pod = map_in(entry, "node_config");
  if (!pod)
    entry.fail("{} needs a 'node_config', which is a pod: {{spec: {{containers: [{{name: worker, image: IMAGE}}]}}}}",
               entry.title());
  pod->only({"apiVersion", "kind", "metadata", "spec"});
  for (const auto& [key, wanted] : {std::pair("apiVersion", "v1"), std::pair("kind", "Pod")})
    if (const auto given = pod->find(key); given && given->as<std::string>() != wanted)
      given->fail("{} must be {}, not '{}'", given->title(), wanted, given->as<std::string>());
  if (const auto metadata = map_in(*pod, "metadata"))
    for (const char* key : {"labels", "annotations"}) map_in(*metadata, key);
  const auto spec = map_in(*pod, "spec");
  if (!spec) pod->fail("{} has no 'spec': add it, with its containers", pod->title());
  hypertune::detail::check_pod_slips(*spec);
  const auto container = main_container(*spec);
  const auto image = container.find("image");
  if (!image || image->is_null() || image->as<std::string>().empty())
    container.fail("{} has no 'image': name the one in which commands and trials run", container.title());
  if (type.resources_known) return;
  if (const auto cpus = asked_for(container, "cpu")) type.resources.cpus = quantity_of(*cpus);
  if (const auto memory = asked_for(container, "memory"))
    type.resources.memory = static_cast<std::uint64_t>(std::min(quantity_of(*memory), 0x1p62));
  if (const auto gpus = asked_for(container, "nvidia.com/gpu")) type.resources.gpus = quantity_of(*gpus);
  type.resources_known = true;
}

}  // namespace hypertune::inline v0::cluster::detail
