// Machines of a cluster that are Kubernetes pods.
#include "pods.hpp"

#include "machine_setup.hpp"

#include <hypertune/cluster/detail/files.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/detail/sleep_for.hpp>
#include <hypertune/k8s/api_error.hpp>
#include <hypertune/remote/host_files.hpp>

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::cluster {
namespace {

ProviderFailure failure_of(const k8s::ApiError& error) {
  if (error.forbidden() && std::string_view(error.what()).find("exceeded quota") != std::string_view::npos)
    return ProviderFailure::capacity;
  return error.code() == Errc::usage && error.status() != 409 ? ProviderFailure::invalid : ProviderFailure::failed;
}

// Converts errors of Kubernetes into provider errors; `where`: the place in the file that they concern.
template <class F>
auto translated(const std::string& where, const F& call) {
  try {
    return call();
  } catch (const k8s::ApiError& error) {
    throw ProviderError(failure_of(error), where + error.what());
  } catch (const ProviderError&) { throw; } catch (const Error& error) {
    if (error.code() == Errc::usage) throw ProviderError(ProviderFailure::invalid, error.what());
    throw;
  }
}

Machine machine_of(const k8s::MachinePod& pod) {
  using Phase = k8s::MachinePod::Phase;
  Machine machine;
  machine.id = pod.name;
  machine.token = pod.token;
  machine.node_type = pod.node_type;
  machine.head = pod.head;
  machine.spot = pod.spot;
  machine.state = pod.phase == Phase::running   ? MachineState::running
                  : pod.phase == Phase::leaving ? MachineState::stopping
                                                : MachineState::pending;
  machine.address = pod.address;
  machine.waiting_reason = pod.sentence;
  machine.may_fail = pod.may_need_fix;
  machine.cannot_start = pod.cannot_start;
  return machine;
}

}  // namespace

k8s::MachinePods pods_of(const ClusterConfig& config) {
  const auto& provider = config.provider;
  return k8s::MachinePods({.cluster = config.name,
                           .name_space = provider.name_space,
                           .kubeconfig = provider.kubeconfig,
                           .context = provider.context,
                           .service_account = provider.service_account});
}

PodProvider::PodProvider(const ClusterConfig& config) : config_(config), pods_(pods_of(config)) {}

std::vector<Machine> PodProvider::list() {
  return translated("", [&] {
    std::vector<Machine> machines;
    for (const auto& pod : pods_.list()) machines.push_back(machine_of(pod));
    return machines;
  });
}

Machine PodProvider::create(const LaunchRequest& request) {
  const auto* type = config_.find_type(request.node_type);
  if (type == nullptr)
    throw ProviderError(ProviderFailure::invalid, fmt::format("there is no node type '{}'", request.node_type));
  const auto title = fmt::format("{}:{}: 'available_node_types.{}.node_config'", config_.file.filename().string(),
                                 type->config_line, type->name);
  using Spot = KubernetesOptions::Spot;
  const auto spot = !request.spot ? Spot::any : type->spot == cluster::Spot::only ? Spot::only : Spot::prefer;
  const auto make = [&] {
    return machine_of(pods_.create({.token = request.token,
                                    .node_type = request.node_type,
                                    .node_config = request.node_config,
                                    .title = title,
                                    .resources = type->resources,
                                    .head = request.head,
                                    .spot = spot}));
  };
  return translated(title + ": ", [&] {
    try {
      return make();
    } catch (const k8s::ApiError& error) {
      if (!error.not_found()) throw;  // only a missing namespace can cause this
      throw ProviderError(ProviderFailure::invalid,
                          fmt::format("{}:{}: 'provider.namespace': {}", config_.file.filename().string(),
                                      config_.provider.line, error.what()));
    }
  });
}

void PodProvider::terminate(const std::vector<std::string>& ids) {
  translated("", [&] { pods_.remove(ids); });
}
void PodProvider::stop(const std::vector<std::string>&) {
  throw ProviderError(ProviderFailure::unsupported, "pods cannot be stopped");
}
void PodProvider::start(const std::vector<std::string>&) {
  throw ProviderError(ProviderFailure::unsupported, "pods cannot be stopped and started");
}
std::string PodProvider::explain(const std::string& id) {
  return translated("", [&] { return pods_.explain(id); });
}
void PodProvider::clear() {
  translated("", [&] { pods_.remove_ended(); });
}

MachineReport PodAccess::set_up(Cluster& cluster, const Machine& machine, const UpOptions& options) {
  return set_up_machine(cluster, machine, options);
}

void PodAccess::introduce(Cluster& cluster, const std::vector<MachineReport>& reports) {
  const auto& config = cluster.config();
  for (const auto& report : reports) {
    if (!report.machine.head || !report.error.empty()) continue;
    const auto link = connect_pod(config, report.machine, cluster.stop());
    const auto folder = remote_folder(config);
    std::string hosts;
    for (const auto& each : reports)
      if (each.error.empty()) hosts += host_line(cluster, each, each.machine.id);
    remote::upload_text(link.shell, hosts, folder + "/hosts", {.mode = 0600});
    if (const auto text = detail::read_file(config.file))
      remote::upload_text(link.shell, *text, folder + "/cluster.yaml", {.mode = 0600});
  }
}

MachineLink connect_pod(const ClusterConfig& config, const Machine& machine, const std::stop_token& stop) {
  const auto pods = pods_of(config);
  struct Ports {
    std::mutex mutex;
    std::vector<k8s::PortForward> all;
  };
  return {.shell = pods.shell(machine.id, stop),
          .forward = [pods, name = machine.id, ports = std::make_shared<Ports>()](std::uint16_t local,
                                                                                  std::uint16_t remote) {
            pods.require_forward();
            const std::lock_guard lock(ports->mutex);
            ports->all.push_back(pods.forward(name, remote, local));
          }};
}

std::optional<LinkProblem> pod_problem(const std::exception& error) {
  const auto* of_api = dynamic_cast<const k8s::ApiError*>(&error);
  if (of_api == nullptr) return std::nullopt;
  return of_api->code() == Errc::io && of_api->reason() != "Stopped" ? LinkProblem::transient : LinkProblem::permanent;
}

int run_pod_session(const ClusterConfig& config, const Machine& machine, const Session& what,
                    const std::stop_token& stop) {
  const auto pods = pods_of(config);
  std::vector<k8s::PortForward> ports;
  if (!what.ports.empty()) pods.require_forward();
  for (const auto& port : what.ports) ports.push_back(pods.forward(machine.id, port.remote, port.local));
  if (what.only_ports) {
    std::string told;
    while (!stop.stop_requested()) {
      hypertune::detail::sleep_for(stop, 1);
      for (const auto& port : ports)
        if (const auto trouble = port.trouble(); !trouble.empty() && trouble != told) {
          told = trouble;
          hypertune::detail::say(fmt::format("hypertune: {}", trouble));
        }
    }
    return 0;
  }
  const char* terminal = std::getenv("TERM");
  return pods.run_foreground(machine.id,
                             {"sh", "-c", R"sh(cd 2>/dev/null || :
if [ -n "$1" ]; then TERM=$1; export TERM; fi
if command -v bash >/dev/null 2>&1; then shell=bash; else shell=sh; fi
if [ -n "$2" ]; then exec "$shell" -lc "$2"; else exec "$shell" -l; fi)sh",
                              "hypertune", what.terminal && terminal != nullptr ? terminal : "", what.command},
                             {.terminal = what.terminal}, stop);
}

}  // namespace hypertune::inline v0::cluster
