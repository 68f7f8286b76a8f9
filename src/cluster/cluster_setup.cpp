// cluster.hpp: what is done to machines.
#include <hypertune/cluster/autoscaler.hpp>
#include <hypertune/cluster/cluster.hpp>
#include <hypertune/cluster/detail/files.hpp>
#include <hypertune/cluster/detail/fingerprint.hpp>
#include <hypertune/cluster/detail/json.hpp>
#include <hypertune/cluster/detail/pause.hpp>
#include <hypertune/cluster/reach.hpp>
#include <hypertune/cluster/subprocess.hpp>
#include <hypertune/cluster/sync.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

namespace hypertune::cluster {
namespace detail {

/// Calls `work(i)` for each index on some threads and waits for all. It must not throw.
template <class F>
void in_parallel(std::size_t count, std::size_t threads, F work) {
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> others;
  for (std::size_t t = 1; t < std::min(count, threads); ++t) others.emplace_back(run);
  run();
}

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

ssh::SshConnection Cluster::connect(const Machine& machine, double deadline) {
  return ssh::SshConnection::open(machine.address, ssh_options(config_, machine, journal_.folder()), deadline);
}

namespace detail {

// The commands that only this kind of machine gets.
static const std::vector<std::string>& role_commands(const ClusterConfig& config, const Machine& machine) {
  if (machine.head) return config.head_setup_commands;
  const auto* type = config.find_type(machine.node_type);
  return type != nullptr && type->own_setup_commands ? type->setup_commands : config.worker_setup_commands;
}

}  // namespace detail

std::string setup_print(const ClusterConfig& config, const Machine& machine) {
  detail::Fingerprint print;
  for (const auto* commands :
       {&config.initialization_commands, &config.setup_commands, &detail::role_commands(config, machine)}) {
    print.add(fmt::format("{} commands", commands->size()));
    for (const auto& command : *commands) print.add(command);
  }
  for (const auto& mount : config.file_mounts) print.add(mount.remote);
  return print.text();
}

MachineReport Cluster::set_up(const Machine& wanted, const UpOptions& options) {
  MachineReport report;
  report.machine = wanted;
  // Once something is done to a machine, or has failed there, what it was set up for before counts no more.
  bool stands = false;
  const auto withdraw = [&] {
    if (std::exchange(stands, false)) journal_.unready(report.machine.token);
  };
  try {
    const auto machine = report.machine = await_address(wanted);
    const bool fresh = config_.provider.type != "local";
    // A new machine's ssh server comes up when it does; hosts that exist answer or are down.
    const double patience = fresh ? config_.provider.start_timeout : 15;
    const auto begin = std::chrono::steady_clock::now();
    std::optional<ssh::SshConnection> connection;
    bool silent = true;  // nothing but the want of an answer was seen
    while (!connection) {
      check_cancelled();
      try {
        connection.emplace(connect(machine, 20));
      } catch (const ssh::SshError& error) {
        const double waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        using ssh::Problem;
        const bool again = ssh::is_transient(error.problem()) ||
                           (fresh && (error.problem() == Problem::login_refused || error.problem() == Problem::other ||
                                      error.problem() == Problem::name_not_found));
        silent = silent && error.problem() == Problem::unreachable;
        if (!again || waited > patience) {
          report.unreachable = again && silent && !cancelled();
          throw;
        }
        for (int i = 0; i < 20 && !cancelled(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
    }
    std::string by;  // what it was set up by
    auto ledger = journal_.ledger();
    if (const auto* entry = ledger.find(machine.token)) {
      stands = entry->ready;
      by = entry->setup;
    }
    const SyncRules rules{config_.rsync_exclude, config_.rsync_filter};
    const auto folder = detail::remote_folder(config_);
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
    std::filesystem::create_directories(journal_.folder() / "logs");
    const auto log_path =
        journal_.folder() / "logs" /
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
      check_cancelled();
      say(fmt::format("{}: {} ({})", detail::machine_label(machine), name, commands.size()));
      begin_part(line);
      run_commands(*connection, name, commands, write_log, hooks_.cancelled);
      mark(line);
    };
    if (!(options.no_restart && was_ready)) {
      phase("initialization_commands", config_.initialization_commands);
      for (const auto& mount : config_.file_mounts) {
        check_cancelled();
        const auto files = scan_files(mount.local, rules);
        detail::Fingerprint name;
        name.add(mount.remote);
        const auto line = fmt::format("mount {} {}", name.text(), files.fingerprint);
        if (has_stamp(line)) continue;
        say(fmt::format("{}: {} ({} files, {:.1f} MB)", detail::machine_label(machine), mount.remote,
                        files.folder ? files.paths.size() : 1, static_cast<double>(files.bytes) / 1e6));
        begin_part(line);
        push_files(*connection, files, mount.remote, hooks_.cancelled);
        mark(line);
      }
      phase("setup_commands", config_.setup_commands);
      phase(machine.head ? "head_setup_commands" : "worker_setup_commands", detail::role_commands(config_, machine));
    }
    report.resources = detail::measure(*connection);
    const auto print = setup_print(config_, machine);
    if (!stands || by != print) journal_.ready(machine.token, print);
  } catch (const Interrupted&) { report.error = "interrupted"; } catch (const std::exception& error) {
    report.error = error.what();
    try {
      withdraw();
    } catch (const std::exception& lost) { report.error += fmt::format("; {}", lost.what()); }
  }
  if (cancelled()) report.error = "interrupted";
  return report;
}

std::vector<MachineReport> Cluster::set_up_all(std::vector<Machine> machines, const UpOptions& options) {
  std::vector<MachineReport> reports(machines.size());
  detail::in_parallel(machines.size(), 16, [&](std::size_t i) {
    reports[i] = set_up(machines[i], options);
    if (reports[i].error.empty())
      say(fmt::format("{}: ready", detail::machine_label(reports[i].machine)));
    else if (reports[i].error != "interrupted")
      say(fmt::format("{}: failed: {}", detail::machine_label(reports[i].machine), reports[i].error));
  });
  return reports;
}

// The head reaches the workers by a key of its own, which never leaves it, and knows their host keys from us.
void Cluster::introduce(const std::vector<MachineReport>& reports) {
  const MachineReport* head = nullptr;
  for (const auto& report : reports)
    if (report.machine.head && report.error.empty()) head = &report;
  if (head == nullptr) return;
  const auto folder = detail::remote_folder(config_);
  auto connection = connect(head->machine);
  const auto key = connection.script(
      "umask 077; cd \"$HOME/$1\" || exit 1; [ -f key ] || ssh-keygen -q -t ed25519 -N '' -C \"hypertune-$2\" -f key "
      ">/dev/null "
      "|| exit 1; cat key.pub",
      {folder, config_.name}, {.deadline = 60});
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
      auto there = connect(machine);
      user = there.facts().user;
      if (keyed)
        there.script(
            "umask 077; mkdir -p \"$HOME/.ssh\"; f=$HOME/.ssh/authorized_keys; touch \"$f\"; "
            "grep -qxF \"$1\" \"$f\" || printf '%s\\n' \"$1\" >>\"$f\"",
            {key.out.substr(0, key.out.find('\n'))}, {.deadline = 60});
      keys = known_host_keys(config_, machine, journal_.folder());
    } catch (const std::exception& error) {
      say(fmt::format("{}: the head will not reach it: {}", detail::machine_label(machine), error.what()));
      return;
    }
    const auto* type = config_.find_type(machine.node_type);
    const Resources has =
        type != nullptr && type->resources_known ? type->resources : report.resources.value_or(Resources{});
    const auto alias = detail::host_alias(config_, machine);
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
    say("the head has no ssh-keygen: programs that are submitted will not reach the workers");
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
    say(fmt::format(
        "the head cannot log in to {}: does its sshd read ~/.ssh/authorized_keys? Programs that are submitted "
        "will not reach it",
        refused.substr(0, end)));
    refused.remove_prefix(std::min(end + 1, refused.size()));
  }
}

// What hypertune left running or lying on a host that goes on existing.
void Cluster::clean_host(const Machine& machine) {
  try {
    auto connection = connect(machine, 10);
    connection.script(
        "d=$HOME/$1; for p in \"$d\"/jobs/*/pid; do [ -f \"$p\" ] && [ ! -f \"${p%pid}exit\" ] && "
        "{ kill -s TERM -- -$(cat \"$p\"); sleep 0.3; kill -s KILL -- -$(cat \"$p\"); } 2>/dev/null; done\n"
        "f=$HOME/.ssh/authorized_keys; if [ -f \"$f\" ] && grep -q \" hypertune-$2\\$\" \"$f\"; then "
        "grep -v \" hypertune-$2\\$\" \"$f\" >\"$f.hypertune\"; cat \"$f.hypertune\" >\"$f\"; rm -f \"$f.hypertune\"; "
        "fi\n"
        "rm -rf \"$d\"; rmdir \"$HOME/.hypertune/clusters\" \"$HOME/.hypertune\" 2>/dev/null; :",
        {detail::remote_folder(config_), config_.name}, {.deadline = 60});
  } catch (const std::exception& error) {
    say(fmt::format("{}: could not be cleaned: {}", detail::machine_label(machine), error.what()));
  }
}

// One machine of the head's type: spot first, on-demand where there is none.
Machine Cluster::launch_head() {
  const auto& type = config_.head();
  std::vector<bool> markets;
  if (type.spot != Spot::never) markets.push_back(true);
  if (type.spot != Spot::only) markets.push_back(false);
  const auto begin = std::chrono::steady_clock::now();
  detail::Pause pause(1, 30);
  for (;;) {
    for (std::size_t i = 0; i < markets.size(); ++i) {
      try {
        auto machine = launch(type, markets[i], true);
        say(fmt::format("launched the head {} ({}{})", machine.id, type.name, markets[i] ? ", spot" : ""));
        return machine;
      } catch (const ProviderError& error) {
        if (error.kind() != ProviderFailure::capacity) throw;
        const double waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        const bool last = i + 1 == markets.size();
        if (last && waited >= config_.provider.start_timeout) throw;
        say(fmt::format("no {}machine for the head: {}{}", markets[i] ? "spot " : "", error.what(),
                        last ? fmt::format("; it is asked for again, for {:.0f} s in all (provider.start_timeout)",
                                           config_.provider.start_timeout)
                             : ""));
      }
    }
    pause.wait(hooks_.cancelled);
    check_cancelled();
  }
}

// As many as the file wants at least; which, the autoscaler says, as if nothing waited.
// Returns how many could not be had.
int Cluster::launch_workers(std::vector<Machine>& machines, std::vector<MachineReport>& failed) {
  auto rules = autoscaler_options(config_);
  rules.upscaling_speed = 1e6;
  rules.idle_timeout = 1e9;  // nothing runs there yet
  rules.backoff = 1;
  rules.most_backoff = 30;
  Autoscaler scaler(rules);
  for (const auto& machine : machines) {
    const auto* type = config_.find_type(machine.node_type);
    const auto index = type != nullptr ? static_cast<std::size_t>(type - config_.types.data()) : config_.head_type;
    scaler.machine_added(machine.token, index, machine.spot, machine.head, true, 0);
  }
  const auto missing = [&] {
    const auto of = [&](const NodeType* type) {
      return static_cast<int>(std::count_if(machines.begin(), machines.end(), [&](const Machine& machine) {
        return !machine.head && (type == nullptr || machine.node_type == type->name);
      }));
    };
    const int count = std::max(0, std::min(config_.min_workers, config_.max_workers) - of(nullptr));
    int by_type = 0;
    for (const auto& type : config_.types) by_type += std::max(0, type.min_workers - of(&type));
    return std::max(count, std::min(by_type, config_.max_workers - of(nullptr)));
  };
  const auto begin = std::chrono::steady_clock::now();
  const auto now = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  std::mutex mutex;
  int broken = 0;  // calls that failed for anything but want of machines: a few may
  bool told = false;
  for (;;) {
    check_cancelled();
    std::vector<LaunchMachine> wanted;
    for (const auto& action : scaler.decide({}, now()).actions)
      if (const auto* launch = std::get_if<LaunchMachine>(&action)) wanted.push_back(*launch);
    if (wanted.empty()) {
      const double next = scaler.next_change(now());
      if (missing() == 0 || broken >= 3 || !(next <= config_.provider.start_timeout)) return missing();
      if (!std::exchange(told, true))
        say(fmt::format("the other workers are asked for again, for {:.0f} s in all (provider.start_timeout)",
                        config_.provider.start_timeout));
      detail::Pause pause(std::max(0.01, next - now()));
      pause.wait(hooks_.cancelled);
      continue;
    }
    std::vector<std::string> tokens;
    for (const auto& what : wanted) {
      tokens.push_back(new_token());
      scaler.launching(tokens.back(), what, now());
    }
    bool came = false;
    int failures = 0;
    detail::in_parallel(wanted.size(), 8, [&](std::size_t i) {
      const auto& type = config_.types[wanted[i].type];
      try {
        auto machine = launch(type, wanted[i].spot, false, tokens[i]);
        const std::lock_guard lock(mutex);
        came = true;
        if (machine.token != tokens[i]) {  // one that had been stopped
          scaler.gone(tokens[i], now());
          scaler.machine_added(machine.token, wanted[i].type, false, false, true, now());
        }
        say(fmt::format("launched worker {} ({}{})", machine.id, type.name, wanted[i].spot ? ", spot" : ""));
        machines.push_back(std::move(machine));
      } catch (const Interrupted&) {
      } catch (const std::exception& error) {
        const auto* refusal = dynamic_cast<const ProviderError*>(&error);
        const auto kind = refusal != nullptr ? refusal->kind() : ProviderFailure::failed;
        say(fmt::format("no worker ({}{}): {}", type.name, wanted[i].spot ? ", spot" : "", error.what()));
        const std::lock_guard lock(mutex);
        scaler.launch_failed(tokens[i], kind, error.what(), now());
        if (kind != ProviderFailure::capacity) failures = std::max(failures, kind == ProviderFailure::failed ? 1 : 3);
        MachineReport report;
        report.machine.node_type = type.name;
        report.error = error.what();
        failed.push_back(std::move(report));
      }
    });
    broken = came ? failures : broken + failures;
  }
}

// What was made and has never answered is of no use, and would be met again by the next up. Whatever else failed (the
// provider's calls, this machine's ssh, the login) says nothing against the machine, which is kept.
void Cluster::end_unreachable(std::vector<MachineReport>& reports) {
  if (config_.provider.type == "local") return;  // hosts that exist
  const auto ledger = journal_.ledger();
  std::vector<Machine> useless;
  for (auto& report : reports) {
    const auto* entry = ledger.find_id(report.machine.id);
    if (!report.unreachable || entry == nullptr || entry->answered || entry->paused > 0)
      continue;  // it did answer once
    say(fmt::format("{}: is ended, as it never answered within {:.0f} s: the next `up` makes another one",
                    detail::machine_label(report.machine), config_.provider.start_timeout));
    useless.push_back(report.machine);
  }
  try {
    terminate(useless, "it never answered");
  } catch (const Interrupted&) { throw; } catch (const std::exception& error) {
    say(fmt::format("machines that do not answer may be left: {}", error.what()));
  }
}

std::vector<MachineReport> Cluster::up(const UpOptions& options) {
  auto machines = reconcile();
  const auto live = [](const Machine& machine) {
    return machine.state == MachineState::pending || machine.state == MachineState::running;
  };
  std::erase_if(machines, [&](const Machine& machine) { return !live(machine); });
  std::vector<MachineReport> failed;
  // The head first: everything else is for it.
  if (std::none_of(machines.begin(), machines.end(), [](const Machine& machine) { return machine.head; }))
    machines.push_back(launch_head());
  const int missing = launch_workers(machines, failed);
  check_cancelled();
  auto reports = set_up_all(machines, options);
  check_cancelled();
  end_unreachable(reports);
  introduce(reports);
  const auto last = std::min<std::ptrdiff_t>(missing, std::ssize(failed));  // the last word about each
  reports.insert(reports.end(), failed.end() - last, failed.end());
  return reports;
}

}  // namespace hypertune::cluster
