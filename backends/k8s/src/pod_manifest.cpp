// Makes the manifest of a worker's pod.
#include "pod_manifest.hpp"

#include "checkpoint_volume.hpp"
#include "json_at.hpp"
#include "yaml_json.hpp"

#include <hypertune/config/pod_capacity.hpp>
#include <hypertune/config/pod_check.hpp>
#include <hypertune/config/yaml.hpp>
#include <hypertune/error.hpp>
#include <hypertune/k8s/pod_keeper.hpp>
#include <hypertune/trial/detail/group_address.hpp>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

namespace hypertune::inline v0::k8s {
namespace {

namespace json = boost::json;

json::object template_of(const KubernetesOptions& options, const std::string& title = "executor.pod") {
  if (options.pod.empty()) return {};
  const auto text = load_yaml_text(options.pod, title);
  hypertune::detail::check_pod(text);
  return json_of(text).as_object();
}

// The object under a key, made if it is absent. Invalidates references to other values in `parent`.
json::object& object_of(json::object& parent, std::string_view key) {
  auto& value = parent[key];
  if (value.is_null()) value.emplace_object();
  if (!value.is_object()) fail(Errc::usage, "'{}' must be a map", key);
  return value.get_object();
}
json::array& array_of(json::object& parent, std::string_view key) {
  auto& value = parent[key];
  if (value.is_null()) value.emplace_array();
  if (!value.is_array()) fail(Errc::usage, "'{}' must be a list", key);
  return value.get_array();
}
void set_default(json::object& object, std::string_view key, json::value value) {
  if (!object.contains(key)) object[key] = std::move(value);
}

bool has_name(const json::value& item, std::string_view name) {
  return item.is_object() && text_in(item.get_object(), "name") == name;
}
// Adds a named item, unless the template has one of that name.
void add_named(json::array& items, json::object item) {
  const std::string name(item["name"].as_string());
  if (std::none_of(items.begin(), items.end(), [&](const auto& each) { return has_name(each, name); }))
    items.emplace_back(std::move(item));
}

json::object& worker_container(json::object& spec) {
  auto& containers = array_of(spec, "containers");
  for (auto& each : containers)
    if (has_name(each, container_name)) return each.get_object();
  if (containers.empty()) containers.emplace_back(json::object{{"name", json::string(container_name)}});
  if (!containers.front().is_object()) fail(Errc::usage, "'containers' must be a list of containers");
  auto& first = containers.front().get_object();
  set_default(first, "name", json::string(container_name));
  return first;
}

// "2", "500m": whole millicores, the unit of Kubernetes.
std::string cpu_quantity(double cpus) {
  const auto millis = std::max<std::int64_t>(1, std::llround(cpus * 1000));
  return millis % 1000 == 0 ? fmt::to_string(millis / 1000) : fmt::format("{}m", millis);
}

// `asks`: the pod itself asks for cpus, for the container or for all of them together.
void add_resources(json::object& container, const KubernetesOptions& options, bool asks) {
  auto& resources = object_of(container, "resources");
  for (const char* key : {"requests", "limits"}) object_of(resources, key);
  auto& requests = object_of(resources, "requests");
  auto& limits = object_of(resources, "limits");
  // There is no CPU limit, so that the trial may use idle cores and is not throttled.
  if (options.cpus || !asks) set_default(requests, "cpu", json::string(cpu_quantity(options.cpus.value_or(1))));
  if (options.memory > 0) {
    set_default(requests, "memory", json::string(fmt::to_string(options.memory)));
    set_default(limits, "memory", json::string(fmt::to_string(options.memory)));
  }
  if (options.gpus > 0 && options.gpu_class.empty())
    set_default(limits, options.gpu_resource, json::string(fmt::to_string(options.gpus)));
  for (const char* key : {"requests", "limits"})
    if (resources[key].get_object().empty()) resources.erase(key);
  if (resources.empty()) container.erase("resources");
}

bool asks_for_cpus(const KubernetesOptions& options) {
  return !options.pod.empty() && hypertune::detail::asked_by_pod(load_yaml_text(options.pod), "cpu").has_value();
}

constexpr std::string_view claim_name = "hypertune-gpus";

void add_claim(json::object& spec, json::object& container, const std::string& claim_template) {
  if (claim_template.empty()) return;
  add_named(array_of(spec, "resourceClaims"),
            {{"name", claim_name}, {"resourceClaimTemplateName", json::string(claim_template)}});
  add_named(array_of(object_of(container, "resources"), "claims"), {{"name", claim_name}});
}

json::object variable(std::string_view name, std::string_view value) {
  return {{"name", json::string(name)}, {"value", json::string(value)}};
}
json::object field_variable(std::string_view name, std::string_view path) {
  return {{"name", json::string(name)}, {"valueFrom", {{"fieldRef", {{"fieldPath", json::string(path)}}}}}};
}

void add_environment(json::object& container, const PodPlan& plan) {
  auto& environment = array_of(container, "env");
  add_named(environment, field_variable("HYPERTUNE_NODE", "spec.nodeName"));
  add_named(environment, field_variable("HYPERTUNE_HOST_ADDRESS", "status.podIP"));
  add_named(environment, field_variable(hypertune::detail::group_address_variable, "status.podIP"));
  add_named(environment, field_variable(name_variable, "metadata.name"));
  add_named(environment, variable("XDG_CACHE_HOME", fmt::format("{}/cache", pod_folder)));
  add_named(environment, variable(agents_variable, agents_folder));
  if (plan.secret.empty()) return;
  add_named(environment, {{"name", json::string(token_variable)},
                          {"valueFrom", {{"secretKeyRef", {{"name", json::string(plan.secret)}, {"key", "token"}}}}}});
}

void add_volumes(json::object& spec, json::object& container, const KubernetesOptions& options, const PodPlan& plan) {
  add_named(array_of(spec, "volumes"), {{"name", "hypertune"}, {"emptyDir", json::object()}});
  add_named(array_of(container, "volumeMounts"), {{"name", "hypertune"}, {"mountPath", json::string(pod_folder)}});
  if (!options.volume.empty()) {
    add_named(array_of(spec, "volumes"),
              {{"name", volume_name}, {"persistentVolumeClaim", {{"claimName", json::string(options.volume)}}}});
    add_named(array_of(container, "volumeMounts"),
              {{"name", volume_name}, {"mountPath", json::string(volume_in_workers(options))}});
  }
  if (plan.driver.empty()) return;
  // A file that follows the annotation. By it the pod finds a driver that was restarted elsewhere.
  const auto field = fmt::format("metadata.annotations['{}']", driver_annotation);
  json::object item{{"path", "driver"}, {"fieldRef", {{"fieldPath", json::string(field)}}}};
  json::object source{{"items", json::array{std::move(item)}}};
  add_named(array_of(spec, "volumes"), {{"name", "hypertune-driver"}, {"downwardAPI", std::move(source)}});
  add_named(array_of(container, "volumeMounts"),
            {{"name", "hypertune-driver"}, {"mountPath", "/var/run/hypertune"}, {"readOnly", true}});
}

// Labels that clouds and provisioners set on nodes that they may take back, each with its value: Google (GKE), Amazon
// (EKS), Azure (AKS), Karpenter; from their documentation of node labels.
constexpr std::pair<std::string_view, std::string_view> spot_labels[] = {
    {"cloud.google.com/gke-spot", "true"},      {"cloud.google.com/gke-preemptible", "true"},
    {"eks.amazonaws.com/capacityType", "SPOT"}, {"kubernetes.azure.com/scalesetpriority", "spot"},
    {"karpenter.sh/capacity-type", "spot"},     {"hypertune/spot", "true"}};

json::object expression(std::string_view key, std::string_view how, json::array values) {
  return {{"key", json::string(key)}, {"operator", json::string(how)}, {"values", std::move(values)}};
}

// Adds the expressions to each alternative of the required terms.
void require_of_nodes(json::object& node_affinity, const json::array& expressions, std::string_view kind) {
  if (expressions.empty()) return;
  auto& required = object_of(node_affinity, "requiredDuringSchedulingIgnoredDuringExecution");
  auto& terms = array_of(required, "nodeSelectorTerms");
  if (terms.empty()) terms.emplace_back(json::object());
  for (auto& term : terms) {
    if (!term.is_object()) fail(Errc::usage, "'nodeSelectorTerms' must be a list of maps");
    auto& all = array_of(term.get_object(), kind);
    all.insert(all.end(), expressions.begin(), expressions.end());
  }
}

void add_spot(json::object& node_affinity, json::array& tolerations, KubernetesOptions::Spot spot) {
  using Spot = KubernetesOptions::Spot;
  if (spot == Spot::any) return;
  if (spot != Spot::never)
    for (const auto& [label, value] : spot_labels)
      tolerations.emplace_back(
          json::object{{"key", json::string(label)}, {"operator", "Equal"}, {"value", json::string(value)}});
  if (spot == Spot::never) {
    json::array none;
    for (const auto& [label, value] : spot_labels) none.emplace_back(expression(label, "NotIn", {json::string(value)}));
    return require_of_nodes(node_affinity, none, "matchExpressions");
  }
  if (spot == Spot::prefer) {
    auto& preferred = array_of(node_affinity, "preferredDuringSchedulingIgnoredDuringExecution");
    for (const auto& [label, value] : spot_labels)
      preferred.emplace_back(json::object{
          {"weight", 100},
          {"preference", {{"matchExpressions", json::array{expression(label, "In", {json::string(value)})}}}}});
    return;
  }
  // Any one of the labels suffices. The terms are alternatives, so each term of the template is combined with each
  // label.
  auto& required = object_of(node_affinity, "requiredDuringSchedulingIgnoredDuringExecution");
  auto& terms = array_of(required, "nodeSelectorTerms");
  const json::array given = terms.empty() ? json::array{json::object()} : terms;
  terms.clear();
  for (const auto& term : given)
    for (const auto& [label, value] : spot_labels) {
      if (!term.is_object()) fail(Errc::usage, "'nodeSelectorTerms' must be a list of maps");
      auto alternative = term.get_object();
      array_of(alternative, "matchExpressions").emplace_back(expression(label, "In", {json::string(value)}));
      terms.emplace_back(std::move(alternative));
    }
}

void add_placement(json::object& spec, const KubernetesOptions& options, const PodPlan& plan) {
  if (!options.node_selector.empty()) {
    auto& selector = object_of(spec, "nodeSelector");
    for (const auto& [label, value] : options.node_selector) set_default(selector, label, json::string(value));
  }
  array_of(spec, "tolerations");
  object_of(spec, "affinity");
  auto& tolerations = array_of(spec, "tolerations");
  auto& node_affinity = object_of(object_of(spec, "affinity"), "nodeAffinity");
  add_spot(node_affinity, tolerations, options.spot);
  if (!plan.avoid_nodes.empty()) {
    json::array each;  // an expression on a node's name takes only one value
    for (const auto& node : plan.avoid_nodes)
      each.emplace_back(expression("metadata.name", "NotIn", {json::string(node)}));
    require_of_nodes(node_affinity, each, "matchFields");
  }
  if (node_affinity.empty()) spec["affinity"].get_object().erase("nodeAffinity");
  if (spec["affinity"].get_object().empty()) spec.erase("affinity");
  // By default a pod stays for five minutes on a node that does not answer. Here it is given up much earlier.
  constexpr int seconds = 10;
  for (const char* taint : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
    if (std::none_of(tolerations.begin(), tolerations.end(),
                     [&](const auto& each) { return each.is_object() && text_in(each.get_object(), "key") == taint; }))
      tolerations.emplace_back(json::object{
          {"key", taint}, {"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", seconds}});
}

}  // namespace

std::string kubernetes_name(std::string_view text, std::size_t most) {
  std::string name;
  for (const char c : text) {
    if (name.size() >= most) break;
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && std::isalnum(byte) != 0)
      name += static_cast<char>(std::tolower(byte));
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  // An object's name may have to begin with a letter.
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0) name.insert(0, "h");
  if (name.size() > most) name.resize(most);
  return name;
}

std::string work_folder(const KubernetesOptions& options) {
  return options.workdir.empty() ? fmt::format("{}/work", pod_folder) : options.workdir;
}

std::string container_of(const KubernetesOptions& options) {
  auto pod = template_of(options);
  return std::string(worker_container(object_of(pod, "spec"))["name"].as_string());
}

namespace {

void fill_pod(json::object& pod, const KubernetesOptions& options, const PodPlan& plan) {
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  auto& metadata = object_of(pod, "metadata");
  metadata["name"] = json::string(plan.name);
  auto& labels = object_of(metadata, "labels");
  labels[experiment_label] = json::string(plan.experiment);
  labels[role_label] = "worker";
  labels[worker_label] = json::string(plan.worker);
  if (!options.queue.empty()) set_default(labels, "kueue.x-k8s.io/queue-name", json::string(options.queue));
  if (!plan.driver.empty()) object_of(metadata, "annotations")[driver_annotation] = json::string(plan.driver);
  if (!plan.avoid_nodes.empty())
    object_of(metadata, "annotations")[avoids_annotation] =
        json::string(fmt::to_string(fmt::join(plan.avoid_nodes, " ")));
  if (plan.owner) { metadata["ownerReferences"] = json::array{owner_reference(*plan.owner)}; }

  auto& spec = object_of(pod, "spec");
  if (!plan.group.empty())
    set_default(spec, "schedulingGroup", json::object{{"podGroupName", json::string(plan.group)}});
  spec["restartPolicy"] = "Never";  // a new pod replaces it, so that a trial is lost only once
  set_default(spec, "terminationGracePeriodSeconds", static_cast<std::int64_t>(std::ceil(options.save_grace)));
  set_default(spec, "automountServiceAccountToken", false);  // a trial needs no access to the cluster
  set_default(spec, "enableServiceLinks", false);            // nor variables about its services
  if (!options.priority_class.empty()) set_default(spec, "priorityClassName", json::string(options.priority_class));
  if (!options.service_account.empty()) set_default(spec, "serviceAccountName", json::string(options.service_account));
  for (const auto& secret : options.image_pull_secrets)
    add_named(array_of(spec, "imagePullSecrets"), {{"name", json::string(secret)}});

  auto& container = worker_container(spec);
  if (!options.image.empty()) container["image"] = json::string(options.image);
  if (!container.contains("image"))
    fail(Errc::usage, "the container '{}' has no image: name one (image)",
         std::string_view(container["name"].as_string()));
  if (!plan.command.empty()) {
    container["command"] = json::array(plan.command.begin(), plan.command.end());
    container.erase("args");
  }
  set_default(container, "workingDir", json::string(work_folder(options)));
  add_resources(container, options, asks_for_cpus(options));
  add_claim(spec, container, plan.claim_template);
  add_environment(container, plan);
  add_volumes(spec, container, options, plan);
  add_placement(spec, options, plan);
}

}  // namespace

json::object owner_reference(const Owner& owner) {
  return {{"apiVersion", json::string(owner.api_version)},
          {"kind", json::string(owner.kind)},
          {"name", json::string(owner.name)},
          {"uid", json::string(owner.uid)}};
}

json::object pod_manifest(const KubernetesOptions& options, const PodPlan& plan) {
  auto pod = template_of(options, plan.title);
  try {
    fill_pod(pod, options, plan);
  } catch (const Error& error) { fail(error.code(), "{}: {}", plan.title, error.what()); }
  return pod;
}

void check_workers(const KubernetesOptions& options) {
  check_options(options);
  pod_manifest(options, {});
}

}  // namespace hypertune::inline v0::k8s
