// Setting a machine up before it is used, over any shell.
#include "machine_setup.hpp"

#include "run_commands.hpp"

#include <hypertune/checkpoint/detail/content_hash.hpp>
#include <hypertune/cluster/detail/json.hpp>
#include <hypertune/cluster/detail/poll_interval.hpp>
#include <hypertune/cluster/machine_link.hpp>
#include <hypertune/cluster/sync.hpp>
#include <hypertune/remote/host_files.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::cluster {
namespace {

using hypertune::detail::ContentHash;

// The resources of a machine, measured on it.
Resources measure(const remote::HostShell& shell) {
  const auto result = shell.run(
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
  resources.memory = detail::bytes_of(number("memory"), 10);
  return resources;
}

}  // namespace

std::string remote_folder(const ClusterConfig& config) { return ".hypertune/clusters/" + config.name; }

MachineReport set_up_machine(Cluster& cluster, const Machine& wanted, const UpOptions& options) {
  MachineReport report;
  report.machine = wanted;
  // As soon as a step changes the machine or fails, its earlier set-up is no longer valid.
  bool stands = false;
  const auto withdraw = [&] {
    if (std::exchange(stands, false)) cluster.journal().unready(report.machine.token);
  };
  try {
    const auto machine = report.machine = cluster.await_address(wanted);
    const bool fresh = cluster.config().provider.type != "local";
    // The ssh server of a new machine starts some time after the machine; existing hosts answer at once or are down.
    const double patience = fresh ? cluster.config().provider.start_timeout : 15;
    const auto begin = std::chrono::steady_clock::now();
    std::optional<MachineLink> link;
    bool silent = true;  // all errors so far were missing answers
    while (!link) {
      cluster.check_cancelled();
      try {
        link.emplace(connect_machine(cluster.config(), machine, cluster.state(), 20, cluster.stop()));
      } catch (const Error& error) {
        const double waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        const auto problem = fresh ? fresh_link_problem(error) : link_problem(error);
        silent = silent && problem == LinkProblem::unreachable;
        if (problem == LinkProblem::permanent || waited > patience) {
          report.unreachable = silent && !cluster.cancelled();
          throw;
        }
        detail::PollInterval(1).wait(cluster.stop());
      }
    }
    const auto& shell = link->shell;
    std::string by;  // setup_fingerprint() of the earlier set-up
    auto ledger = cluster.journal().ledger();
    if (const auto* entry = ledger.find(machine.token)) {
      stands = entry->ready;
      by = entry->setup;
    }
    const FolderRules rules{cluster.config().rsync_exclude, cluster.config().rsync_filter};
    const auto folder = remote_folder(cluster.config());
    const auto stamps = shell.must("make its folder",
                                   "umask 077; mkdir -p \"$HOME/$1\"; cat \"$HOME/$1/setup\" 2>/dev/null; :", {folder},
                                   {.deadline = 60});
    std::string stamp = stamps.out;
    const auto has_stamp = [&](const std::string& line) {
      return ("\n" + stamp).find("\n" + line + "\n") != std::string::npos;
    };
    const auto commands_print = [](const char* phase, const std::vector<std::string>& commands) {
      std::string text;
      for (const auto& command : commands) text += command + '\0';
      return fmt::format("{} {}", phase, ContentHash::of(text));
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
    // A step that has begun may have changed the earlier state, so until it is done, neither the old nor the new step
    // counts as done.
    const auto begin_part = [&](const std::string& line) {
      withdraw();
      auto next = unmarked(line);
      if (next == stamp) return;
      stamp = std::move(next);
      remote::upload_text(shell, stamp, folder + "/setup");
    };
    const auto mark = [&](const std::string& line) {
      stamp = unmarked(line) + line + "\n";
      remote::upload_text(shell, stamp, folder + "/setup");
    };
    const auto phase = [&](const char* name, const std::vector<std::string>& commands) {
      if (commands.empty() || options.restart_only) return;
      const auto line = commands_print(name, commands);
      if (has_stamp(line)) return;
      cluster.check_cancelled();
      cluster.say(fmt::format("{}: {} ({})", detail::machine_label(machine), name, commands.size()));
      begin_part(line);
      run_commands(shell, folder, name, commands, write_log, cluster.stop());
      mark(line);
    };
    if (!(options.no_restart && was_ready)) {
      phase("initialization_commands", cluster.config().initialization_commands);
      for (const auto& mount : cluster.config().file_mounts) {
        cluster.check_cancelled();
        const auto files = scan_files(mount.local, rules);
        const auto line = fmt::format("mount {} {}", ContentHash::of(mount.remote), files.fingerprint);
        if (has_stamp(line)) continue;
        cluster.say(fmt::format("{}: {} ({} files, {:.1f} MB)", detail::machine_label(machine), mount.remote,
                                files.folder ? files.paths.size() : 1, static_cast<double>(files.bytes) / 1e6));
        begin_part(line);
        push_files(shell, files, mount.remote, cluster.stop());
        mark(line);
      }
      phase("setup_commands", cluster.config().setup_commands);
      phase(machine.head ? "head_setup_commands" : "worker_setup_commands", role_commands(cluster.config(), machine));
    }
    report.resources = measure(shell);
    const auto print = setup_fingerprint(cluster.config(), machine);
    if (!stands || by != print) cluster.journal().ready(machine.token, print);
  } catch (const Interrupted&) { report.error = "interrupted"; } catch (const CannotStart& error) {
    report.error = error.what();
    report.unreachable = !cluster.cancelled();
  } catch (const std::exception& error) {
    report.error = error.what();
    try {
      withdraw();
    } catch (const std::exception& lost) { report.error += fmt::format("; {}", lost.what()); }
  }
  if (cluster.cancelled()) report.error = "interrupted";
  return report;
}

std::string host_line(const Cluster& cluster, const MachineReport& report, const std::string& name) {
  const auto* type = cluster.config().find_type(report.machine.node_type);
  const Resources has =
      type != nullptr && type->resources_known ? type->resources : report.resources.value_or(Resources{});
  return fmt::format("{} cpus={:g} gpus={:g}\n", name, has.cpus, has.gpus);
}

}  // namespace hypertune::inline v0::cluster
