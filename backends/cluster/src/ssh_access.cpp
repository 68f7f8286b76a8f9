// SshAccess: what is done to machines over ssh.
#include <hypertune/cluster/detail/files.hpp>
#include <hypertune/cluster/detail/fingerprint.hpp>
#include <hypertune/cluster/detail/json.hpp>
#include <hypertune/cluster/detail/parallel.hpp>
#include <hypertune/cluster/detail/pause.hpp>
#include <hypertune/cluster/reach.hpp>
#include <hypertune/cluster/ssh_access.hpp>
#include <hypertune/cluster/sync.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::cluster {
namespace detail {

/// Where a cluster keeps its own files on a machine, below the home folder.
static std::string remote_folder(const ClusterConfig& config) { return ".hypertune/clusters/" + config.name; }

// What a machine has, as it says itself.
static std::optional<Resources> measure(const ssh::SshConnection& connection) {
  const auto result = connection.script(
      "echo cpus=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)\n"
      "echo gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')\n"
      "awk '/^MemTotal:/ {print \"memory=\" $2}' /proc/meminfo 2>/dev/null\n",
      {}, {.deadline = 60});
  const auto number = [&](std::string_view key) {
    const auto at = result.out.find(std::string(key) + "=");
    const double said = at == std::string::npos ? 0 : std::strtod(result.out.c_str() + at + key.size() + 1, nullptr);
    return said > 0 && said < 1e12 ? said : 0.0;
  };
  Resources resources;
  resources.cpus = std::max(1.0, number("cpus"));
  resources.gpus = number("gpus");
  resources.memory = bytes_of(number("memory"), 10);
  return resources;
}

}  // namespace detail

static ssh::SshConnection connect(Cluster& cluster, const Machine& machine, double deadline = 30) {
  return ssh::SshConnection::open(machine.address, ssh_options(cluster.config(), machine, cluster.state()), deadline);
}

MachineReport SshAccess::set_up(Cluster& cluster, const Machine& wanted, const UpOptions& options) {
  MachineReport report;
  report.machine = wanted;
  // Once something is done to a machine, or has failed there, what it was set up for before counts no more.
  bool stands = false;
  const auto withdraw = [&] {
    if (std::exchange(stands, false)) cluster.journal().unready(report.machine.token);
  };
  try {
    const auto machine = report.machine = cluster.await_address(wanted);
    const bool fresh = cluster.config().provider.type != "local";
    // A new machine's ssh server comes up when it does; hosts that exist answer or are down.
    const double patience = fresh ? cluster.config().provider.start_timeout : 15;
    const auto begin = std::chrono::steady_clock::now();
    std::optional<ssh::SshConnection> connection;
    bool silent = true;  // nothing but the want of an answer was seen
    while (!connection) {
      cluster.check_cancelled();
      try {
        connection.emplace(connect(cluster, machine, 20));
      } catch (const ssh::SshError& error) {
        const double waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        using ssh::Problem;
        const bool again = ssh::is_transient(error.problem()) ||
                           (fresh && (error.problem() == Problem::login_refused || error.problem() == Problem::other ||
                                      error.problem() == Problem::name_not_found));
        silent = silent && error.problem() == Problem::unreachable;
        if (!again || waited > patience) {
          report.unreachable = again && silent && !cluster.cancelled();
          throw;
        }
        detail::Pause(1).wait(cluster.stop());
      }
    }
    std::string by;  // what it was set up by
    auto ledger = cluster.journal().ledger();
    if (const auto* entry = ledger.find(machine.token)) {
      stands = entry->ready;
      by = entry->setup;
    }
    const FolderRules rules{cluster.config().rsync_exclude, cluster.config().rsync_filter};
    const auto folder = detail::remote_folder(cluster.config());
    const auto stamps = connection->must(
        "make its folder", "umask 077; mkdir -p \"$HOME/$1\"; cat \"$HOME/$1/setup\" 2>/dev/null; :", {folder},
        {.deadline = 60});
    std::string stamp = stamps.out;
    const auto has_stamp = [&](const std::string& line) {
      return ("\n" + stamp).find("\n" + line + "\n") != std::string::npos;
    };
    const auto commands_print = [](const char* phase, const std::vector<std::string>& commands) {
      detail::Fingerprint print;
      for (const auto& command : commands) print.add(command);
      return fmt::format("{} {}", phase, print.text());
    };
    const bool was_ready = stands && !stamp.empty();
    std::filesystem::create_directories(cluster.state() / "logs");
    const auto log_path =
        cluster.state() / "logs" /
        (std::string(detail::is_plain_name(machine.id) && machine.id.find('/') == std::string::npos ? machine.id
                                                                                                    : "machine") +
         ".log");
    std::ofstream log(log_path, std::ios::app | std::ios::binary);
    std::filesystem::permissions(log_path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    std::mutex log_mutex;
    const auto write_log = [&](std::string_view text) {
      const std::lock_guard lock(log_mutex);
      log << text << std::flush;
    };
    const auto unmarked = [&](const std::string& line) {
      const auto key = line.substr(0, line.rfind(' ') + 1);
      std::string next;
      std::string_view rest = stamp;
      while (!rest.empty()) {
        const auto end = std::min(rest.find('\n'), rest.size() - 1) + 1;
        if (!rest.starts_with(key)) next += rest.substr(0, end);
        rest.remove_prefix(end);
      }
      return next;
    };
    // What is begun may change what was there: until it is done, neither the old nor the new counts as done.
    const auto begin_part = [&](const std::string& line) {
      withdraw();
      auto next = unmarked(line);
      if (next == stamp) return;
      stamp = std::move(next);
      connection->upload_text(stamp, folder + "/setup");
    };
    const auto mark = [&](const std::string& line) {
      stamp = unmarked(line) + line + "\n";
      connection->upload_text(stamp, folder + "/setup");
    };
    const auto phase = [&](const char* name, const std::vector<std::string>& commands) {
      if (commands.empty() || options.restart_only) return;
      const auto line = commands_print(name, commands);
      if (has_stamp(line)) return;
      cluster.check_cancelled();
      cluster.say(fmt::format("{}: {} ({})", detail::machine_label(machine), name, commands.size()));
      begin_part(line);
      run_commands(*connection, name, commands, write_log, cluster.stop());
      mark(line);
    };
    if (!(options.no_restart && was_ready)) {
      phase("initialization_commands", cluster.config().initialization_commands);
      for (const auto& mount : cluster.config().file_mounts) {
        cluster.check_cancelled();
        const auto files = scan_files(mount.local, rules);
        detail::Fingerprint name;
        name.add(mount.remote);
        const auto line = fmt::format("mount {} {}", name.text(), files.fingerprint);
        if (has_stamp(line)) continue;
        cluster.say(fmt::format("{}: {} ({} files, {:.1f} MB)", detail::machine_label(machine), mount.remote,
                                files.folder ? files.paths.size() : 1, static_cast<double>(files.bytes) / 1e6));
        begin_part(line);
        push_files(*connection, files, mount.remote, cluster.stop());
        mark(line);
      }
      phase("setup_commands", cluster.config().setup_commands);
      phase(machine.head ? "head_setup_commands" : "worker_setup_commands", role_commands(cluster.config(), machine));
    }
    report.resources = detail::measure(*connection);
    const auto print = setup_print(cluster.config(), machine);
    if (!stands || by != print) cluster.journal().ready(machine.token, print);
  } catch (const Interrupted&) { report.error = "interrupted"; } catch (const std::exception& error) {
    report.error = error.what();
    try {
      withdraw();
    } catch (const std::exception& lost) { report.error += fmt::format("; {}", lost.what()); }
  }
  if (cluster.cancelled()) report.error = "interrupted";
  return report;
}

// The head reaches the workers by a key of its own, which never leaves it, and knows their host keys from us.
void SshAccess::introduce(Cluster& cluster, const std::vector<MachineReport>& reports) {
  const MachineReport* head = nullptr;
  for (const auto& report : reports)
    if (report.machine.head && report.error.empty()) head = &report;
  if (head == nullptr) return;
  const auto folder = detail::remote_folder(cluster.config());
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
    const auto* type = cluster.config().find_type(machine.node_type);
    const Resources has =
        type != nullptr && type->resources_known ? type->resources : report.resources.value_or(Resources{});
    const auto alias = detail::host_alias(cluster.config(), machine);
    const std::lock_guard lock(mutex);
    hosts += fmt::format("{} cpus={:g} gpus={:g}\n", alias, has.cpus, has.gpus);
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
    const auto end = std::min(refused.find('\n'), refused.size());
    cluster.say(fmt::format(
        "the head cannot log in to {}: does its sshd read ~/.ssh/authorized_keys? Programs that are submitted "
        "will not reach it",
        refused.substr(0, end)));
    refused.remove_prefix(std::min(end + 1, refused.size()));
  }
}

// What hypertune left running or lying on a host that goes on existing.
void SshAccess::clean(Cluster& cluster, const Machine& machine) {
  try {
    auto connection = connect(cluster, machine, 10);
    connection.script(
        "d=$HOME/$1; for p in \"$d\"/jobs/*/pid; do [ -f \"$p\" ] && [ ! -f \"${p%pid}exit\" ] && "
        "{ kill -s TERM -- -$(cat \"$p\"); sleep 0.3; kill -s KILL -- -$(cat \"$p\"); } 2>/dev/null; done\n"
        "f=$HOME/.ssh/authorized_keys; if [ -f \"$f\" ] && grep -q \" hypertune-$2\\$\" \"$f\"; then "
        "grep -v \" hypertune-$2\\$\" \"$f\" >\"$f.hypertune\"; cat \"$f.hypertune\" >\"$f\"; rm -f \"$f.hypertune\"; "
        "fi\n"
        "rm -rf \"$d\"; rmdir \"$HOME/.hypertune/clusters\" \"$HOME/.hypertune\" 2>/dev/null; :",
        {detail::remote_folder(cluster.config()), cluster.config().name}, {.deadline = 60});
  } catch (const std::exception& error) {
    cluster.say(fmt::format("{}: could not be cleaned: {}", detail::machine_label(machine), error.what()));
  }
}

void SshAccess::forget(Cluster& cluster, const Machine& machine) {
  forget_host_key(cluster.config(), machine, cluster.state());
}

void SshAccess::offer(Cluster& cluster, const std::vector<OfferedMachine>& machines) {
  std::string text;
  for (const auto& [name, machine] : machines) {
    const auto given = ssh_options(cluster.config(), machine, cluster.state());
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
  const auto own = cluster.config().auth.ssh_config;
  text += "Host *\n";
  if (!own.empty()) {
    text += fmt::format("  Include \"{}\"\n", own.string());
  } else if (const char* home = std::getenv("HOME"); home != nullptr) {
    text += fmt::format("  Include \"{}/.ssh/config\"\n  Include /etc/ssh/ssh_config\n", home);
  }
  if (text == written_) return;
  detail::replace_file(ssh_config(cluster), text);
  written_ = text;
}

}  // namespace hypertune::inline v0::cluster
