// SshAccess: setting machines up over ssh.
#include "machine_setup.hpp"

#include <hypertune/cluster/detail/files.hpp>
#include <hypertune/cluster/detail/parallel.hpp>
#include <hypertune/cluster/reach.hpp>
#include <hypertune/cluster/ssh_access.hpp>
#include <hypertune/detail/text.hpp>
#include <hypertune/ssh/connection.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::cluster {

static ssh::SshConnection connect(Cluster& cluster, const Machine& machine, double deadline = 30) {
  return ssh::SshConnection::open(machine.address, ssh_options(cluster.config(), machine, cluster.state()), deadline);
}

MachineReport SshAccess::set_up(Cluster& cluster, const Machine& machine, const UpOptions& options) {
  return set_up_machine(cluster, machine, options);
}

// The head logs in to the workers with its own key, which never leaves it, and gets their host keys from this computer.
void SshAccess::introduce(Cluster& cluster, const std::vector<MachineReport>& reports) {
  const MachineReport* head = nullptr;
  for (const auto& report : reports)
    if (report.machine.head && report.error.empty()) head = &report;
  if (head == nullptr) return;
  const auto folder = remote_folder(cluster.config());
  auto connection = connect(cluster, head->machine);
  const auto key = connection.script(
      "umask 077; cd \"$HOME/$1\" || exit 1; [ -f key ] || ssh-keygen -q -t ed25519 -N '' -C \"hypertune-$2\" -f key "
      ">/dev/null "
      "|| exit 1; cat key.pub",
      {folder, cluster.config().name}, {.deadline = 60});
  const bool keyed = key.ok() && key.out.starts_with("ssh-");
  std::string hosts, config, known;
  std::mutex mutex;
  detail::in_parallel(reports.size(), 16, [&](std::size_t i) {
    const auto& report = reports[i];
    if (!report.error.empty()) return;
    const auto& machine = report.machine;
    std::string user;
    std::vector<std::string> keys;
    try {
      auto there = connect(cluster, machine);
      user = there.facts().user;
      if (keyed)
        there.script(
            "umask 077; mkdir -p \"$HOME/.ssh\"; f=$HOME/.ssh/authorized_keys; touch \"$f\"; "
            "grep -qxF \"$1\" \"$f\" || printf '%s\\n' \"$1\" >>\"$f\"",
            {key.out.substr(0, key.out.find('\n'))}, {.deadline = 60});
      keys = known_host_keys(cluster.config(), machine, cluster.state());
    } catch (const std::exception& error) {
      cluster.say(fmt::format("{}: the head will not reach it: {}", detail::machine_label(machine), error.what()));
      return;
    }
    const auto alias = detail::host_alias(cluster.config(), machine);
    const std::lock_guard lock(mutex);
    hosts += host_line(cluster, report, alias);
    config +=
        fmt::format("Host {}\n  HostName {}\n  HostKeyAlias {}\n  User {}\n", alias, machine.address, alias, user);
    if (machine.port != 0) config += fmt::format("  Port {}\n", machine.port);
    config += fmt::format(
        "  IdentityFile ~/{0}/key\n  IdentitiesOnly yes\n  UserKnownHostsFile ~/{0}/known_hosts\n"
        "  StrictHostKeyChecking yes\n",
        folder);
    for (const auto& line : keys) known += fmt::format("{} {}\n", alias, line);
  });
  connection.upload_text(known, folder + "/known_hosts", {.mode = 0600});
  connection.upload_text(config, folder + "/ssh_config", {.mode = 0600});
  connection.upload_text(hosts, folder + "/hosts", {.mode = 0600});
  if (!keyed) {
    cluster.say("the head has no ssh-keygen: programs that are submitted will not reach the workers");
    return;
  }
  const auto tried = connection.script(
      "cd \"$HOME/$1\" || exit 1; for h in $(cut -d' ' -f1 hosts); do "
      "ssh -F ssh_config -o BatchMode=yes -o ConnectTimeout=8 \"$h\" true </dev/null >/dev/null 2>&1 || echo \"$h\" & "
      "done; wait",
      {folder}, {.deadline = 60});
  std::string_view refused = tried.out;
  while (!refused.empty()) {
    cluster.say(fmt::format(
        "the head cannot log in to {}: does its sshd read ~/.ssh/authorized_keys? Programs that are submitted "
        "will not reach it",
        hypertune::detail::take_until(refused, '\n')));
  }
}

// Removes the files and processes of hypertune from a host that continues to exist.
void SshAccess::clean(Cluster& cluster, const Machine& machine) {
  try {
    auto connection = connect(cluster, machine, 10);
    connection.script(
        "d=$HOME/$1; for p in \"$d\"/jobs/*/pid; do [ -f \"$p\" ] && [ ! -f \"${p%pid}exit\" ] && "
        "{ kill -s TERM -- -$(cat \"$p\"); sleep 0.3; kill -s KILL -- -$(cat \"$p\"); } 2>/dev/null; done\n"
        "f=$HOME/.ssh/authorized_keys; if [ -f \"$f\" ] && grep -q \" hypertune-$2\\$\" \"$f\"; then "
        "grep -v \" hypertune-$2\\$\" \"$f\" >\"$f.hypertune\"; cat \"$f.hypertune\" >\"$f\"; rm -f \"$f.hypertune\"; "
        "fi\n"
        "find \"$d\" -type d ! -perm -0700 -exec chmod u+rwx {} \\; 2>/dev/null; rm -rf \"$d\"; rmdir "
        "\"$HOME/.hypertune/clusters\" \"$HOME/.hypertune\" 2>/dev/null; :",
        {remote_folder(cluster.config()), cluster.config().name}, {.deadline = 60});
  } catch (const std::exception& error) {
    cluster.say(fmt::format("{}: could not be cleaned: {}", detail::machine_label(machine), error.what()));
  }
}

void SshAccess::forget(Cluster& cluster, const Machine& machine) {
  forget_host_key(cluster.config(), machine, cluster.state());
}

std::string SshAccess::ssh_config_text(const ClusterConfig& config, const std::filesystem::path& state,
                                       const std::vector<OfferedMachine>& machines) {
  std::string text;
  for (const auto& [name, machine] : machines) {
    const auto given = ssh_options(config, machine, state);
    text += fmt::format("Host {}\n", name);
    if (name != machine.address) text += fmt::format("  HostName {}\n", machine.address);
    if (!given.user.empty()) text += fmt::format("  User {}\n", given.user);
    if (given.port != 0) text += fmt::format("  Port {}\n", given.port);
    if (!given.identity.empty()) text += fmt::format("  IdentityFile \"{}\"\n", given.identity.string());
    for (const auto& option : given.options) {
      const auto equals = option.find('=');
      text += fmt::format("  {} {}\n", option.substr(0, equals), option.substr(equals + 1));
    }
  }
  const auto own = config.auth.ssh_config;
  text += "Host *\n";
  if (!own.empty()) {
    text += fmt::format("  Include \"{}\"\n", own.string());
  } else if (const char* home = std::getenv("HOME"); home != nullptr) {
    text += fmt::format("  Include \"{}/.ssh/config\"\n  Include /etc/ssh/ssh_config\n", home);
  }
  return text;
}

void SshAccess::offer(Cluster& cluster, const std::vector<OfferedMachine>& machines) {
  const auto text = ssh_config_text(cluster.config(), cluster.state(), machines);
  if (text == written_) return;
  detail::replace_file(ssh_config(cluster), text);
  written_ = text;
}

}  // namespace hypertune::inline v0::cluster
