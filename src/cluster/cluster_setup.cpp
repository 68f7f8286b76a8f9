// Cluster: launching and setting up machines.
#include <hypertune/checkpoint/detail/content_hash.hpp>
#include <hypertune/cluster/autoscaler.hpp>
#include <hypertune/cluster/cluster.hpp>
#include <hypertune/cluster/detail/parallel.hpp>
#include <hypertune/cluster/detail/poll_interval.hpp>

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

namespace hypertune::inline v0::cluster {
const std::vector<std::string>& role_commands(const ClusterConfig& config, const Machine& machine) {
  if (machine.head) return config.head_setup_commands;
  const auto* type = config.find_type(machine.node_type);
  return type != nullptr && type->own_setup_commands ? type->setup_commands : config.worker_setup_commands;
}

std::string host_name(const ClusterConfig& config, const Machine& machine) {
  if (config.provider.type == "kubernetes") return machine.id;
  return config.provider.type == "local" ? machine.address : "hypertune-" + config.name + "-" + machine.id;
}

MachineReport AnyAccess::set_up(Cluster& cluster, const Machine& machine, const UpOptions& options) const {
  if (self_) return self_->set_up(cluster, machine, options);
  MachineReport report;
  try {
    report.machine = cluster.await_address(machine);
    cluster.journal().ready(report.machine.token, setup_fingerprint(cluster.config(), report.machine));
  } catch (const std::exception& error) { report.error = error.what(); }
  return report;
}

std::string setup_fingerprint(const ClusterConfig& config, const Machine& machine) {
  std::string text;
  for (const auto* commands :
       {&config.initialization_commands, &config.setup_commands, &role_commands(config, machine)}) {
    text += fmt::format("{} commands\n", commands->size());
    for (const auto& command : *commands) text += command + '\0';
  }
  for (const auto& mount : config.file_mounts) text += mount.remote + '\0';
  return hypertune::detail::ContentHash::of(text);
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

// Launches one machine of the head's type: spot first, on-demand if there is none.
Machine Cluster::launch_head() {
  const auto& type = config_.head();
  std::vector<bool> markets;
  if (type.spot != Spot::never) markets.push_back(true);
  if (type.spot != Spot::only) markets.push_back(false);
  const auto begin = std::chrono::steady_clock::now();
  detail::PollInterval pause(1, 30);
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
    pause.wait(hooks_.stop);
    check_cancelled();
  }
}

// Launches the minimum number of workers of the file. The autoscaler chooses their types, as for an empty queue.
// Returns how many could not be launched.
int Cluster::launch_workers(std::vector<Machine>& machines, std::vector<MachineReport>& failed) {
  auto rules = autoscaler_options(config_);
  rules.upscaling_speed = 1e6;
  rules.idle_timeout = 1e9;  // no trial runs there yet
  for (auto& type : rules.types) type.idle_timeout.reset();
  rules.backoff = 1;
  rules.max_backoff = 30;
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
  int broken = 0;  // failures in a row other than lack of capacity, weighted; gives up at 3
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
      detail::PollInterval pause(std::max(0.01, next - now()));
      pause.wait(hooks_.stop);
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
        if (machine.token != tokens[i]) {  // a machine that had been stopped
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

// Terminates machines that never answered: they are useless, and the next up() would find them again. Other failures
// (the provider's calls, this machine's ssh, the login) are not the machine's fault, so it is kept.
void Cluster::end_unreachable(std::vector<MachineReport>& reports) {
  if (config_.provider.type == "local") return;  // existing hosts
  const auto ledger = journal_.ledger();
  std::vector<Machine> useless;
  for (auto& report : reports) {
    const auto* entry = ledger.find_id(report.machine.id);
    if (!report.unreachable || entry == nullptr || entry->answered || entry->paused > 0)
      continue;  // it has answered before
    const auto why = report.machine.state == MachineState::pending
                         ? std::string("it cannot come up as it is")
                         : fmt::format("it never answered within {:.0f} s", config_.provider.start_timeout);
    say(fmt::format("{}: is ended, as {}: the next `up` makes another one", detail::machine_label(report.machine),
                    why));
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
  // The head first: everything else depends on it. But no head where a worker's type cannot be had as it is written.
  if (std::none_of(machines.begin(), machines.end(), [](const Machine& machine) { return machine.head; })) {
    for (const auto& type : config_.types)
      if (&type == &config_.head() || type.max_workers > 0) provider_.check(type);
    machines.push_back(launch_head());
  }
  const int missing = launch_workers(machines, failed);
  check_cancelled();
  auto reports = set_up_all(machines, options);
  check_cancelled();
  end_unreachable(reports);
  access_.introduce(*this, reports);
  const auto last = std::min<std::ptrdiff_t>(missing, std::ssize(failed));  // the most recent failures
  reports.insert(reports.end(), failed.end() - last, failed.end());
  return reports;
}

}  // namespace hypertune::inline v0::cluster
