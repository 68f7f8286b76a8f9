// AgentProgram: the program that runs in a worker's pod.
#include "agent_program.hpp"

#include "pod_manifest.hpp"
#include "pod_shell.hpp"

#include <hypertune/config/pod_capacity.hpp>
#include <hypertune/error.hpp>
#include <hypertune/k8s/pod_keeper.hpp>
#include <hypertune/remote/agent_files.hpp>
#include <hypertune/remote/runtime.hpp>
#include <hypertune/remote/shipping.hpp>

#include <fmt/format.h>

#include <utility>

namespace hypertune::inline v0::k8s {

AgentProgram::AgentProgram(const KubernetesSetup& setup, Client client) : setup_(setup), client_(std::move(client)) {}

Resources AgentProgram::resources() const { return capacity_of(setup_.options); }

remote::HostOptions AgentProgram::limits() const {
  const auto has = resources();
  return {.name = {}, .cpus = has.cpus, .gpus = has.gpus, .memory = has.memory};
}

std::vector<std::string> AgentProgram::in_image_as(std::string_view role) const {
  std::vector<std::string> command{setup_.options.program};
  command.insert(command.end(), setup_.arguments.begin(), setup_.arguments.end());
  command.insert(command.end(), {std::string(role), remote::agent_limits_text(limits())});
  return command;
}

std::vector<std::string> AgentProgram::container_command() const {
  if (!setup_.options.program.empty()) return in_image_as(keeper_argument);
  constexpr const char* orphan_timeout = "600";
  return {"sh", "-c", std::string(hold_script()), "hypertune-pod", std::string(agents_folder), orphan_timeout};
}

std::vector<std::string> AgentProgram::prepare(const std::string& pod, const std::string& container,
                                               const std::stop_token& stop) const {
  const auto& options = setup_.options;
  const auto folder = work_folder(options);
  remote::AgentFiles files{.program = setup_.program,
                           .arguments = setup_.arguments,
                           .mounts = options.file_mounts,
                           .programs = setup_.programs,
                           .needs = setup_.needs,
                           .directory = folder,
                           .ship = {.directory = fmt::format("{}/cache", pod_folder)},
                           .shared = options.transfer.shared || !options.volume.empty()};
  const bool in_image = !options.program.empty();
  if (in_image && files.mounts.empty()) return in_image_as("--hypertune-agent");  // works in an image without a shell
  auto shell = shell_of(client_, pod, container, stop);
  shell.facts = remote::ask_facts(shell);
  if (!in_image) return remote::prepare_agent(shell, files, limits());
  for (auto& mount : files.mounts) {
    if (!mount.remote.starts_with('/') && !mount.remote.starts_with('~')) mount.remote = folder + "/" + mount.remote;
    remote::mount_files(shell, mount, files.ship);
  }
  return in_image_as("--hypertune-agent");
}

}  // namespace hypertune::inline v0::k8s
