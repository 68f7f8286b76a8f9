// What runs in a worker's pod.
#include "agent_program.hpp"

#include "pod_manifest.hpp"

#include <hypertune/error.hpp>
#include <hypertune/hosts/host_spec.hpp>
#include <hypertune/k8s/pod_keeper.hpp>
#include <hypertune/remote/runtime.hpp>

#include <fmt/format.h>

#include <utility>

namespace hypertune::inline v0::k8s {

AgentProgram::AgentProgram(const KubernetesSetup& setup, Client client) : setup_(setup), client_(std::move(client)) {}

Resources AgentProgram::resources() const {
  const auto& options = setup_.options;
  return {.cpus = options.cpus, .gpus = static_cast<double>(options.gpus), .memory = options.memory};
}

std::string AgentProgram::limits() const {
  const auto& options = setup_.options;
  return remote::agent_limits_text(
      {.name = {}, .cpus = options.cpus, .gpus = static_cast<double>(options.gpus), .memory = options.memory});
}

std::vector<std::string> AgentProgram::container_command() const {
  const auto& options = setup_.options;
  if (options.program.empty())
    return {"sh", "-c", std::string(hold_script()), "hypertune-pod", std::string(agents_folder), "600"};
  std::vector<std::string> command{options.program};
  command.insert(command.end(), setup_.arguments.begin(), setup_.arguments.end());
  command.insert(command.end(), {std::string(keeper_argument), limits()});
  return command;
}

std::vector<std::string> AgentProgram::prepare(const std::string&, const std::string&, const std::stop_token&) const {
  const auto& options = setup_.options;
  std::vector<std::string> command{options.program};
  command.insert(command.end(), setup_.arguments.begin(), setup_.arguments.end());
  command.insert(command.end(), {"--hypertune-agent", limits()});
  return command;
}

}  // namespace hypertune::inline v0::k8s
