// MachinePods: pods as machines of a cluster.
#include "json_at.hpp"
#include "permissions.hpp"
#include "pod_dialer.hpp"
#include "pod_log.hpp"
#include "pod_manifest.hpp"
#include "pod_shell.hpp"
#include "pod_state.hpp"

#include <hypertune/k8s/access.hpp>
#include <hypertune/k8s/machine_pods.hpp>
#include <hypertune/k8s/pod_keeper.hpp>
#include <hypertune/remote/host_error.hpp>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <utility>

namespace hypertune::inline v0::k8s {
namespace {

namespace json = boost::json;
using Phase = MachinePod::Phase;

constexpr std::string_view token_label = "hypertune/token";
constexpr std::string_view type_label = "hypertune/type";
constexpr std::string_view machine_label = "hypertune/machine";  // head or worker
constexpr std::string_view market_label = "hypertune/market";    // spot or on-demand
/// An environment variable in each pod: the name of its cluster.
constexpr const char* cluster_variable = "HYPERTUNE_CLUSTER";

std::vector<Permission> needed() { return permissions_for({Use::machines}); }

AccessOptions access_of(const MachinePodsOptions& options) {
  AccessOptions access{.name_space = options.name_space};
  // The kubeconfig that CLUSTER.yaml names is valid where the file comes from, not in a pod of the cluster.
  const char* here = std::getenv(cluster_variable);
  const bool own_pod = here != nullptr && here == options.cluster && std::getenv("KUBERNETES_SERVICE_HOST") != nullptr;
  if (own_pod) {
    access.variable = [](const std::string& name) -> std::optional<std::string> {
      const char* value = name == "KUBECONFIG" || name == "HOME" ? nullptr : std::getenv(name.c_str());
      return value != nullptr && *value != '\0' ? std::optional<std::string>(value) : std::nullopt;
    };
    return access;
  }
  access.context = options.context;
  if (!options.kubeconfig.empty()) access.kubeconfig = {options.kubeconfig};
  return access;
}

// The container that commands run in, according to the pod's object.
std::string container_in(const json::object& pod) {
  const json::value whole(pod);
  const auto* all = array_at(whole, "/spec/containers");
  if (all == nullptr || all->empty()) return {};
  for (const auto& each : *all)
    if (text_at(each, "/name") == container_name) return std::string(container_name);
  return text_at(all->front(), "/name");
}

std::string label_of(const json::object& pod, std::string_view label) {
  const auto* metadata = object_in(pod, "metadata");
  const auto* labels = metadata != nullptr ? object_in(*metadata, "labels") : nullptr;
  return labels != nullptr ? std::string(text_in(*labels, label)) : "";
}

// Nullopt if the pod has ended.
std::optional<MachinePod> machine_of(const json::object& pod) {
  const auto state = pod_state(pod, container_in(pod));
  MachinePod machine{.name = state.name,
                     .token = label_of(pod, token_label),
                     .node_type = label_of(pod, type_label),
                     .head = label_of(pod, machine_label) == "head",
                     .spot = label_of(pod, market_label) == "spot",
                     .address = state.ip,
                     .sentence = state.sentence};
  if (state.leaving)
    machine.phase = Phase::leaving;
  else if (state.phase == PodState::Phase::ended)
    return std::nullopt;
  else if (state.phase == PodState::Phase::running)
    machine.phase = Phase::running;
  machine.cannot_start = state.prospect == PodState::Prospect::never;
  machine.may_need_fix = machine.cannot_start || state.prospect == PodState::Prospect::unlikely;
  return machine;
}

bool names_account(const json::object& pod) {
  const json::value whole(pod);
  return !text_at(whole, "/spec/serviceAccountName").empty();
}

}  // namespace

struct MachinePods::State {
  explicit State(MachinePodsOptions given) : options(std::move(given)), client(load_access(access_of(options))) {}

  std::string path(std::string_view pod = {}) const {
    const auto all = api_path({"api", "v1", "namespaces", client.name_space(), "pods"});
    return pod.empty() ? all : all + api_path({pod});
  }
  // If the account lacks a permission, the error names the rule to add.
  Answer call(const Request& request, const std::stop_token& stop) {
    try {
      return client.call(request, stop);
    } catch (const ApiError& error) {
      if (error.forbidden() && std::string_view(error.what()).find("quota") == std::string_view::npos)
        require_permissions(client, needed(), stop);
      throw;
    }
  }
  std::vector<json::object> pods(const std::stop_token& stop) {
    std::vector<json::object> all;
    std::string next;
    do {
      Request request{
          .path = path(),
          .query = {{"labelSelector", fmt::format("{}={}", cluster_label, options.cluster)}, {"limit", "500"}}};
      if (!next.empty()) request.query.emplace_back("continue", next);
      auto list = call(request, stop).json();
      next = text_at(list, "/metadata/continue");
      auto* items = list.is_object() ? list.get_object().if_contains("items") : nullptr;
      if (items != nullptr && items->is_array())
        for (auto& item : items->get_array())
          if (item.is_object()) all.push_back(std::move(item.get_object()));
    } while (!next.empty());
    return all;
  }
  std::optional<json::object> pod(const std::string& name, const std::stop_token& stop) {
    try {
      auto answer = call({.path = path(name)}, stop).json();
      if (answer.is_object()) return std::move(answer.get_object());
    } catch (const ApiError& error) {
      if (!error.not_found()) throw;
    }
    return std::nullopt;
  }
  void remove(const std::string& name, const std::stop_token& stop) {
    try {
      call({.method = Method::remove, .path = path(name)}, stop);
    } catch (const ApiError& error) {
      if (!error.not_found()) throw;
    }
  }
  // The container of a running pod. ApiError if the pod does not run.
  std::string container(const std::string& name, const std::stop_token& stop) {
    const auto found = pod(name, stop);
    if (!found)
      throw ApiError(404, "NotFound", fmt::format("there is no pod '{}' in namespace '{}'", name, client.name_space()));
    auto own = container_in(*found);
    const auto state = pod_state(*found, own);
    if (state.phase != PodState::Phase::running)
      throw ApiError(state.phase == PodState::Phase::ended ? 410 : 503, "NotRunning",
                     fmt::format("the pod '{}' {}", name, state.sentence));
    return own;
  }
  std::string manifest(const MachinePodRequest& pod_spec, const std::string& name) const {
    const auto& has = pod_spec.resources;
    KubernetesOptions pod{.cpus = has.cpus,
                          .memory = has.memory,
                          .gpus = static_cast<int>(std::ceil(has.gpus)),
                          .spot = pod_spec.spot,
                          .pod = pod_spec.node_config};
    if (pod_spec.head) pod.service_account = options.service_account;
    // The script keeps the pod running until it is deleted, whether or not a driver is there.
    constexpr const char* ten_years = "315360000";
    auto object = pod_manifest(pod, {.name = name,
                                     .experiment = {},
                                     .worker = {},
                                     .command = {"sh", "-c", std::string(hold_script()), "hypertune-pod",
                                                 std::string(agents_folder), ten_years},
                                     .title = pod_spec.title});
    auto& labels = object["metadata"].at("labels").get_object();
    labels.erase(experiment_label);
    labels.erase(worker_label);
    labels[cluster_label] = json::string(options.cluster);
    labels[token_label] = json::string(pod_spec.token);
    labels[type_label] = json::string(pod_spec.node_type);
    labels[machine_label] = pod_spec.head ? "head" : "worker";
    labels[market_label] = pod_spec.spot == KubernetesOptions::Spot::any ? "on-demand" : "spot";
    const auto own = container_in(object);
    auto& metadata = object["metadata"].get_object();
    if (!metadata.contains("annotations")) metadata["annotations"] = json::object();
    metadata["annotations"].get_object()["kubectl.kubernetes.io/default-container"] = json::string(own);
    auto& spec = object["spec"].get_object();
    const auto given = json::parse(pod_spec.node_config, {}, {.max_depth = 64});
    if (names_account(object) && !(given.at("spec").get_object().contains("automountServiceAccountToken")))
      spec["automountServiceAccountToken"] = true;
    for (auto& container : spec["containers"].get_array())
      if (text_at(container, "/name") == own)
        container.at("env").get_array().emplace_back(
            json::object{{"name", cluster_variable}, {"value", json::string(options.cluster)}});
    return json::serialize(object);
  }

  MachinePodsOptions options;
  Client client;
  std::mutex mutex;  // held while the account's permissions are queried
  bool allowed = false;
};

MachinePods::MachinePods(MachinePodsOptions options) : state_(std::make_shared<State>(std::move(options))) {}

std::vector<MachinePod> MachinePods::list(const std::stop_token& stop) const {
  std::vector<MachinePod> machines;
  for (const auto& pod : state_->pods(stop))
    if (auto machine = machine_of(pod)) machines.push_back(*std::move(machine));
  return machines;
}

MachinePod MachinePods::create(const MachinePodRequest& pod_spec, const std::stop_token& stop) const {
  auto& self = *state_;
  {
    const std::lock_guard lock(self.mutex);
    if (!self.allowed) require_permissions(self.client, needed(), stop);
    self.allowed = true;
  }
  const std::string_view token = pod_spec.token;
  const auto name = fmt::format("{}-{}-{}", kubernetes_name(self.options.cluster, 24),
                                pod_spec.head ? "head" : "worker", token.substr(token.starts_with("ht-") ? 3 : 0));
  // Fields that this program does not know may be valid in a newer Kubernetes; the API server checks them.
  const auto answer = self.call({.method = Method::post,
                                 .path = self.path(),
                                 .query = {{"fieldValidation", "Strict"}},
                                 .body = self.manifest(pod_spec, name),
                                 .named = true},
                                stop);
  std::optional<json::object> made;
  if (answer.existed) {
    made = self.pod(name, stop);
  } else if (auto object = answer.json(); object.is_object()) {
    made = std::move(object.get_object());
  }
  auto machine = made ? machine_of(*made) : std::nullopt;
  if (!machine) throw ApiError(0, "Gone", fmt::format("the pod '{}' has ended: {}", name, explain(name, stop)));
  return *std::move(machine);
}

void MachinePods::remove(const std::vector<std::string>& names, const std::stop_token& stop) const {
  for (const auto& name : names) state_->remove(name, stop);
}

int MachinePods::remove_ended(const std::stop_token& stop) const {
  int count = 0;
  for (const auto& pod : state_->pods(stop))
    if (!machine_of(pod)) {
      state_->remove(pod_state(pod, {}).name, stop);
      ++count;
    }
  return count;
}

std::string MachinePods::explain(const std::string& name, const std::stop_token& stop) const {
  const auto pod = state_->pod(name, stop);
  if (!pod) return {};
  const auto container = container_in(*pod);
  const auto state = pod_state(*pod, container);
  if (state.phase != PodState::Phase::ended) return state.sentence;
  const auto said = end_of_log(state_->client, name, container, stop);
  return said.empty() ? state.sentence : fmt::format("{}; its log ends with: {}", state.sentence, said);
}

remote::HostShell MachinePods::shell(const std::string& name, const std::stop_token& stop) const {
  const auto container = state_->container(name, stop);
  auto shell = shell_of(state_->client, name, container, {});
  shell.facts = remote::ask_facts(shell_of(state_->client, name, container, stop));
  return shell;
}

int MachinePods::run_foreground(const std::string& name, std::vector<std::string> command, const Foreground& streams,
                                const std::stop_token& stop) const {
  return state_->client.run_foreground(
      {.pod = name, .command = std::move(command), .container = state_->container(name, stop)}, streams, stop);
}

PortForward MachinePods::forward(const std::string& name, std::uint16_t port, std::uint16_t local) const {
  return state_->client.forward({.pod = name, .port = port}, local);
}

void MachinePods::require_forward() const { require_permissions(state_->client, permissions_for({Use::forward})); }

namespace {

/// Copies what an agent needs into an existing pod, and starts the agent.
struct MachineDialer {
  Client client;
  std::function<std::string(const std::stop_token&)> container;
  std::string pod;
  remote::AgentFiles files;
  HostOptions limits;

  remote::AgentStream dial(const std::stop_token& stop) {
    try {
      const auto own = container(stop);
      auto shell = shell_of(client, pod, own, stop);
      shell.facts = remote::ask_facts(shell);
      const auto command = remote::prepare_agent(shell, files, limits);
      return client.open_stream({.pod = pod, .command = command, .container = own}, stop);
    } catch (const remote::HostError& error) {
      throw remote::DialError(failure_of(error.problem()), error.what(), error.code());
    } catch (const ApiError& error) {
      const bool denied = error.status() == 401 || error.status() == 403;
      if (error.forbidden()) try {
          require_permissions(client, needed(), stop);
        } catch (const Error& missing) {
          throw remote::DialError(remote::FailureClass::permanent, missing.what(), missing.code());
        }
      throw remote::DialError(denied ? remote::FailureClass::permanent : remote::FailureClass::transient, error.what(),
                              error.code());
    }
  }
  remote::FailureClass classify(const std::string& said) const { return classify_exec(said); }
  std::string explain(const std::string& said) const {
    return is_node_trouble(said) ? "the node of its pod does not answer, or has ended the pod" : explain_exec(said);
  }
};

}  // namespace

remote::AnyDialer MachinePods::dialer(const std::string& name, remote::AgentFiles files, HostOptions limits) const {
  return MachineDialer{
      .client = state_->client,
      .container = [state = state_, name](const std::stop_token& stop) { return state->container(name, stop); },
      .pod = name,
      .files = std::move(files),
      .limits = std::move(limits)};
}

}  // namespace hypertune::inline v0::k8s
