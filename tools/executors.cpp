#include "executors.hpp"

#include "cluster_support.hpp"
#include "local_trials.hpp"
#include "remote_trials.hpp"

#include <hypertune/cluster/executor.hpp>
#include <hypertune/slurm/executor.hpp>
#include <hypertune/ssh/executor.hpp>

#ifdef HYPERTUNE_HAS_K8S
#include <hypertune/k8s/executor.hpp>
#endif

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

namespace hypertune::inline v0::command {

namespace {

struct SweepSource {
  const Sweep& sweep;
  const std::string& file;
  const std::vector<std::string>& set;
};

// The program of the command, which a host must have.
std::vector<std::string> needs_of(const Sweep& sweep) {
  const auto& program = sweep.trial->command.front();
  if (program.find('{') != std::string::npos || sweep.trial->environment.contains("PATH")) return {};
  return {program};
}

// What all executors on other machines need.
void finish(remote::RemoteOptions& remote, CheckpointTransfer& transfer, const SweepSource& from) {
  if (auto& shared = transfer.shared) shared->folder = found_from(from.sweep, shared->folder);
  remote.program = sweep_description(from.sweep, from.file, from.set);
}

remote::HostSource hosts_of(const Sweep& sweep) {
  const SshHosts& hosts = sweep.executor.ssh->hosts;
  if (hosts.slurm) return remote::HostSource::slurm();
  if (!hosts.file.empty()) return remote::HostSource::file(found_from(sweep, hosts.file), hosts.interval);
  if (!hosts.command.empty()) {
    auto command = hosts.command;
    if (command.front().find('/') != std::string::npos) command.front() = found_from(sweep, command.front()).string();
    return remote::HostSource::command(std::move(command), hosts.interval);
  }
  if (hosts.list.empty()) return {};  // those of the environment
  return hosts.list;
}

SshSetup ssh_setup_of(const SweepSource& from) {
  const auto& sweep = from.sweep;
  const SshExecutorOptions& text = *sweep.executor.ssh;
  SshSetup setup;
  setup.ssh = text.ssh;
  setup.ssh.config = found_from(sweep, text.ssh.config);
  setup.ssh.identity = found_from(sweep, text.ssh.identity);
  if (text.heartbeat_timeout > 0) {
    setup.remote.timeouts.heartbeat = text.heartbeat_timeout;
    // ssh must not give up the connection before the host is given up.
    setup.ssh.alive_count =
        std::max(setup.ssh.alive_count, static_cast<int>(std::ceil(text.heartbeat_timeout / setup.ssh.alive_interval)));
  }
  setup.mounts = mounts_of(sweep, text.file_mounts, setup.programs);
  setup.needs = needs_of(sweep);
  setup.directory = text.workdir.empty() ? "hypertune/" + *sweep.options.name : text.workdir;
  if (!text.cache.empty()) setup.ship.directory = text.cache;
  setup.limits = {.name = {},
                  .cpus = sweep.executor.cpus,
                  .gpus = sweep.executor.gpus,
                  .memory = sweep.executor.memory,
                  .custom = sweep.executor.custom};
  setup.remote.notice_command = text.notice_command;
  setup.remote.notice_url = text.notice_url;
  setup.remote.transfer = text.transfer;
  finish(setup.remote, setup.remote.transfer, from);
  return setup;
}

AnyExecutor cluster_executor(const SweepSource& from) {
  const auto& sweep = from.sweep;
  ClusterSetup setup;
  setup.file = found_from(sweep, sweep.executor.ssh->cluster);
  setup.grow = sweep.executor.ssh->grow;
  // Use the name under which the cluster was brought up: `-n` is in no file.
  const char *name = std::getenv("HYPERTUNE_CLUSTER"), *of = std::getenv("HYPERTUNE_CLUSTER_FILE");
  std::error_code ignored;
  if (name != nullptr && of != nullptr && std::filesystem::equivalent(setup.file, of, ignored))
    setup.overrides.name = name;
  setup.remote = ssh_setup_of(from);
  // A closed terminal ends the experiment like Ctrl-C. Only the experiment's own handler of SIGTERM can do that.
  setup.tick = [heard = interruptions()]() mutable {
    if (interruptions() == heard) return;
    heard = interruptions();
    ::kill(::getpid(), SIGTERM);
  };
  return ClusterExecutor(std::move(setup));
}

AnyExecutor ssh_executor(const SweepSource& from) {
  if (!from.sweep.executor.ssh->cluster.empty()) return cluster_executor(from);
  auto setup = ssh_setup_of(from);
  setup.hosts = hosts_of(from.sweep);
  return SshExecutor(std::move(setup));
}

std::string where_over_ssh(const ExecutorOptions& executor) {
  const auto& ssh = *executor.ssh;
  if (!ssh.cluster.empty()) return fmt::format("on machines of {}, as the queue asks for them", ssh.cluster.string());
  if (ssh.hosts.list.empty()) return "over ssh, on hosts that are asked for when it runs";
  std::string names;
  for (const auto& host : ssh.hosts.list) names += (names.empty() ? "" : ", ") + host.name;
  return "over ssh on " + names;
}

AnyExecutor slurm_executor(const SweepSource& from) {
  SlurmSetup setup;
  setup.options = *from.sweep.executor.slurm;
  finish(setup.remote, setup.options.transfer, from);
  return SlurmExecutor(std::move(setup));
}

std::string where_in_slurm(const ExecutorOptions& executor) {
  const auto& slurm = *executor.slurm;
  return fmt::format("in {} to {} workers of Slurm{}", slurm.pool.min, slurm.pool.max,
                     slurm.partition.empty() ? "" : ", partition " + slurm.partition);
}

AnyExecutor kubernetes_executor(const SweepSource& from) {
#ifdef HYPERTUNE_HAS_K8S
  KubernetesSetup setup;
  setup.options = *from.sweep.executor.kubernetes;
  auto& options = setup.options;
  options.kubeconfig = found_from(from.sweep, options.kubeconfig);
  options.file_mounts = mounts_of(from.sweep, std::move(options.file_mounts), setup.programs);
  setup.needs = needs_of(from.sweep);
  finish(setup.remote, options.transfer, from);
  return KubernetesExecutor(std::move(setup));
#else
  fail(Errc::usage, "{}: executor kubernetes needs OpenSSL, without which this command was built (libssl-dev)",
       from.sweep.file.string());
#endif
}

std::string where_in_pods(const ExecutorOptions& executor) {
  const auto& options = *executor.kubernetes;
  return fmt::format("in {} to {} pods of {}", options.pool.min, options.pool.max,
                     options.image.empty() ? "'pod'" : options.image);
}

struct ExecutorType {
  const char* name;  // as in `executor: {type: …}`
  AnyExecutor (*make)(const SweepSource& from);
  std::string (*where)(const ExecutorOptions& executor);
  bool here;  // the program must be on this machine
};
constexpr ExecutorType types[]{
    {"local", [](const SweepSource& from) { return executor_of(from.sweep); },
     [](const ExecutorOptions&) { return std::string("on this machine"); }, true},
    {"ssh", ssh_executor, where_over_ssh, false},
    {"slurm", slurm_executor, where_in_slurm, true},
    {"kubernetes", kubernetes_executor, where_in_pods, false},
};
const ExecutorType& type_of(const Sweep& sweep) {
  const auto* type = std::find_if(std::begin(types), std::end(types),
                                  [&](const ExecutorType& each) { return sweep.executor.type == each.name; });
  if (type == std::end(types)) fail(Errc::usage, "there is no executor '{}'", sweep.executor.type);
  return *type;
}

}  // namespace

AnyExecutor executor_of(const Sweep& sweep, const std::string& file, const std::vector<std::string>& set) {
  return type_of(sweep).make({sweep, file, set});
}
bool program_is_here(const Sweep& sweep) { return type_of(sweep).here; }
std::string where_trials_run(const Sweep& sweep) { return type_of(sweep).where(sweep.executor); }

}  // namespace hypertune::inline v0::command
