// The functions that depend on the provider: its machines, their set-up, and connections to them.
#include <hypertune/cluster/machine_link.hpp>
#include <hypertune/cluster/providers.hpp>
#include <hypertune/cluster/reach.hpp>
#include <hypertune/cluster/ssh_access.hpp>
#include <hypertune/detail/shell_quote.hpp>
#include <hypertune/ssh/connection.hpp>
#include <hypertune/ssh/error.hpp>

#ifdef HYPERTUNE_CLUSTER_K8S
#include "pods.hpp"
#endif

#include <fmt/format.h>

#include <memory>
#include <utility>

namespace hypertune::inline v0::cluster {
namespace {

#ifdef HYPERTUNE_CLUSTER_K8S
bool of_pods(const ClusterConfig& config) { return config.provider.type == "kubernetes"; }
#endif

LinkProblem ssh_problem(const std::exception& error, bool fresh) {
  const auto* of_ssh = dynamic_cast<const ssh::SshError*>(&error);
  if (of_ssh == nullptr) return LinkProblem::permanent;
  using ssh::Problem;
  const auto problem = of_ssh->problem();
  if (problem == Problem::unreachable) return LinkProblem::unreachable;
  const bool young =
      fresh && (problem == Problem::login_refused || problem == Problem::other || problem == Problem::name_not_found);
  return ssh::is_transient(problem) || young ? LinkProblem::transient : LinkProblem::permanent;
}

// For interactive use: ssh makes a separate connection.
int run_ssh_session(const ClusterConfig& config, const Machine& machine, const Session& what,
                    const std::function<int(const std::vector<std::string>&)>& run) {
  std::vector<std::string> options, command;
  for (const auto& port : what.ports)
    options.insert(options.end(), {"-L", fmt::format("127.0.0.1:{}:127.0.0.1:{}", port.local, port.remote)});
  if (!what.ports.empty()) options.insert(options.end(), {"-o", "ExitOnForwardFailure=yes"});
  if (what.only_ports) {
    options.insert(options.end(), {"-N", "-T"});
  } else if (!what.command.empty()) {
    options.emplace_back(what.terminal ? "-t" : "-T");
    const auto quoted = hypertune::detail::shell_quote(what.command);
    const std::string remote =
        fmt::format("if command -v bash >/dev/null 2>&1; then exec bash -lc {0}; else exec sh -lc {0}; fi", quoted);
    command = {"sh", "-c", hypertune::detail::shell_quote(remote)};
  }
  return run(ssh_command(config, machine, cluster_state(config.name), options, command));
}

}  // namespace

AnyProvider provider_of(const ClusterConfig& config) {
#ifdef HYPERTUNE_CLUSTER_K8S
  if (of_pods(config)) return PodProvider(config);
#endif
  return make_provider(config, cluster_state(config.name));
}

AnyAccess access_of(const ClusterConfig& config) {
#ifdef HYPERTUNE_CLUSTER_K8S
  if (of_pods(config)) return PodAccess();
#endif
  static_cast<void>(config);
  return SshAccess();
}

std::unique_ptr<Cluster> open_cluster(ClusterConfig config, ClusterHooks hooks) {
  auto provider = provider_of(config);
  auto access = access_of(config);
  auto state = cluster_state(config.name);
  return std::make_unique<Cluster>(std::move(config), std::move(provider), std::move(state), std::move(hooks),
                                   std::move(access));
}

MachineLink connect_machine(const ClusterConfig& config, const Machine& machine, const std::filesystem::path& state,
                            Seconds deadline, const std::stop_token& stop) {
#ifdef HYPERTUNE_CLUSTER_K8S
  if (of_pods(config)) return connect_pod(config, machine, stop);
#endif
  const auto connection = std::make_shared<ssh::SshConnection>(
      ssh::SshConnection::open(machine.address, ssh_options(config, machine, state), deadline));
  static_cast<void>(stop);  // not passed on: it would also end later work over the connection
  MachineLink link{.shell = connection->shell(), .forward = {}};
  link.shell.run = [connection, run = std::move(link.shell.run)](
                       std::string_view script, const std::vector<std::string>& arguments,
                       const remote::ShellOptions& options) { return run(script, arguments, options); };
  link.forward = [connection](std::uint16_t local, std::uint16_t remote) {
    connection->forward(fmt::to_string(local), fmt::to_string(remote));
  };
  return link;
}

LinkProblem link_problem(const std::exception& error) {
#ifdef HYPERTUNE_CLUSTER_K8S
  if (const auto problem = pod_problem(error)) return *problem;
#endif
  return ssh_problem(error, false);
}
LinkProblem fresh_link_problem(const std::exception& error) {
#ifdef HYPERTUNE_CLUSTER_K8S
  if (const auto problem = pod_problem(error)) return *problem;
#endif
  return ssh_problem(error, true);
}

int run_session(const ClusterConfig& config, const Machine& machine, const Session& what,
                const std::function<int(const std::vector<std::string>&)>& run, const std::stop_token& stop) {
#ifdef HYPERTUNE_CLUSTER_K8S
  if (of_pods(config)) return run_pod_session(config, machine, what, stop);
#endif
  static_cast<void>(stop);  // ssh gets the terminal's signals itself
  return run_ssh_session(config, machine, what, run);
}

}  // namespace hypertune::inline v0::cluster
