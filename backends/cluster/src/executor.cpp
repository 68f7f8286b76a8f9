// ClusterExecutor: one experiment on a cluster.
#include <hypertune/cluster/cluster.hpp>
#include <hypertune/cluster/cost_file.hpp>
#include <hypertune/cluster/detail/files.hpp>
#include <hypertune/cluster/executor.hpp>
#include <hypertune/cluster/machine_link.hpp>
#include <hypertune/cluster/providers.hpp>
#include <hypertune/cluster/scaler.hpp>
#include <hypertune/cluster/ssh_access.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/execute/detail/placement.hpp>
#include <hypertune/remote/demand.hpp>
#include <hypertune/tune/interrupt.hpp>

#ifdef HYPERTUNE_CLUSTER_K8S
#include "pods.hpp"
#endif

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::cluster {
namespace detail {

static bool host_fits(const remote::HostOptions& host, const Resources& needs) {
  using hypertune::detail::fits;
  return (host.cpus <= 0 || fits(needs.cpus, host.cpus)) && (host.gpus < 0 || fits(needs.gpus, host.gpus)) &&
         (host.memory == 0 || needs.memory <= host.memory) && fits(needs.custom, host.custom);
}

static Resources resources_of(const remote::HostOptions& host) {
  return {.cpus = host.cpus, .gpus = host.gpus, .memory = host.memory, .custom = host.custom};
}

/// Handles Ctrl-C while no experiment does.
class ScopedInterruptWatch {
 public:
  ScopedInterruptWatch(const Workload& workload, std::stop_source cancelled) {
    if (!workload.handle_signals) return;
    try {
      watch_.emplace([cancelled = std::move(cancelled)](int) mutable { cancelled.request_stop(); },
                     workload.exit_if_stuck ? AfterSecondSignal::leave : AfterSecondSignal::hand_back);
    } catch (const Error&) {}  // another experiment handles signals
  }

 private:
  std::optional<SignalWatch> watch_;
};

/// One experiment on a cluster.
class ClusterRun {
 public:
  ClusterRun(std::shared_ptr<const ClusterSetup> setup, ClusterConfig config, const Workload& workload)
      : setup_(std::move(setup)),
        config_(std::move(config)),
        workload_(workload),
        notices_(std::make_shared<remote::Notices>(remote::said_by(setup_->say, workload.quiet))) {
    // Checked before anything is locked or paid for.
    ssh::validate(setup_->remote.ssh);
    setup_->remote.remote.validate();
    if (const auto why = Autoscaler(autoscaler_options(config_)).why_never(workload_.each); why && setup_->grow)
      fail(Errc::resources, "{}: {}", config_.file.string(), *why);
    for (const auto& warning : config_.warnings) notices_->say(warning);
    if (workload_.trials == 0) return;  // nothing to do
    tracker_ = std::make_shared<remote::DemandTracker>(workload_);
    const ScopedInterruptWatch watch(workload_, run_);
    if (!setup_->grow) {
      provider_ = provider_of(config_);
      return;
    }
    cluster_ = open_cluster(
        config_, ClusterHooks{.say = [this](const std::string& line) { say(line); }, .stop = run_.get_token()});
    cost_.emplace(workload_.directory, config_.name, so_far());
    scaler_ = std::make_unique<ClusterScaler>(
        *cluster_, [this] { return demand(); }, ScalerOptions{.log = [this](const std::string& line) { say(line); }});
  }
  ClusterRun(const ClusterRun&) = delete;
  ClusterRun& operator=(const ClusterRun&) = delete;
  ~ClusterRun() {
    try {
      finish();
    } catch (const std::exception& error) {
      hypertune::detail::say(fmt::format("hypertune: machines may be left ({}): run `hypertune down {}`", error.what(),
                                         config_.file.string()));
    }
  }

  /// The run is kept alive by its hooks, and ends with them.
  static remote::ElasticExperiment experiment(const std::shared_ptr<ClusterRun>& run) {
    remote::ElasticExperiment all{
        .plan = {}, .hooks = {.ready = [run] { run->await_machine(); }}, .notices = run->notices_};
    if (run->tracker_)
      all.listed = run->listed();
    else
      all.plan.workers = {{"cluster", run->workload_.each, {}}};
    all.demand = run->tracker_;
    return all;
  }

 private:
  static constexpr Seconds looks_every = 5;

  // Throws if there will be none, or if the user interrupts the wait.
  void await_machine() {
    if (!scaler_) {
      if (standing().empty()) {
        if (too_small_.empty())
          fail(Errc::usage,
               "no machine of the cluster '{}' that takes trials is up: `hypertune up` with its file makes them",
               config_.name);
        std::vector<Host> hosts;
        for (const auto& host : too_small_) hosts.push_back({host.name, resources_of(host)});
        fail(
            Errc::resources,
            "no machine of the cluster '{}' that is up has room for a trial: it {}; 'resources' in the sweep is what a "
            "trial needs",
            config_.name, Placement(hosts).why_not(workload_.each));
      }
      running_ = true;
      return;
    }
    const ScopedInterruptWatch watch(workload_, run_);
    std::uint64_t seen = 0;
    while (!run_.stop_requested()) {
      if (!hosts().empty()) {
        running_ = true;
        return;
      }
      scaler_->require_possible(workload_.each);  // the machines' resources are known only after the first is up
      if (const auto why = scaler_->why_no_machine())
        fail(Errc::io, "cluster '{}': no machine comes up: {}", config_.name, *why);
      std::unique_lock lock(mutex_);
      news_.wait_for(lock, run_.get_token(), std::chrono::milliseconds(100), [&] { return lines_ != seen; });
      seen = lines_;
    }
    throw InterruptedEarly();
  }

  std::filesystem::path ssh_config_file() const {
    return cluster_ ? SshAccess::ssh_config(*cluster_) : cluster_state(config_.name) / "ssh_config.standing";
  }

  remote::ListedHosts listed() {
    auto remote = setup_->remote;
    remote.hosts = setup_->grow ? remote::HostSource::callback([this] { return hosts(); }, 1)
                                : remote::HostSource::callback([this] { return standing(); }, looks_every);
#ifdef HYPERTUNE_CLUSTER_K8S
    if (config_.provider.type == "kubernetes") {
      const remote::AgentFiles files{.program = remote.program,
                                     .arguments = remote.arguments,
                                     .mounts = remote.mounts,
                                     .programs = remote.programs,
                                     .needs = remote.needs,
                                     .directory = remote.directory,
                                     .ship = remote.ship,
                                     .shared = remote.remote.transfer.shared.has_value()};
      return {.hosts = remote.hosts,
              .limits = remote.limits,
              .remote = remote.remote,
              .dialer = [pods = pods_of(config_), files](const remote::HostOptions& host) {
                return pods.dialer(host.name, files, host);
              }};
    }
#endif
    remote.ssh.config = ssh_config_file();
    if (config_.provider.type == "aws" && remote.remote.notice_command.empty() && remote.remote.notice_url.empty())
      remote.remote.notice_url = AwsProvider::notice_url;
    return ssh::ssh_hosts(std::move(remote), notices_);
  }

  // The machines that are up, for a run that does not grow the cluster.
  remote::HostList standing() {
    std::vector<OfferedMachine> up;
    remote::HostList list;
    too_small_.clear();
    for (const auto& machine : provider_->list()) {
      if (machine.state != MachineState::running || machine.address.empty()) continue;
      const auto name = host_name(config_, machine);
      remote::HostOptions host{.name = name};
      if (const auto* type = config_.find_type(machine.node_type); type != nullptr && type->resources_known) {
        host.cpus = type->resources.cpus;
        host.gpus = type->resources.gpus;
        host.memory = type->resources.memory;
        host.custom = type->resources.custom;
        host.labels = {{"type", type->name}, {"market", machine.spot ? "spot" : "on-demand"}};
        if (host.cpus == 0) continue;
        if (!host_fits(host, workload_.each)) {
          too_small_.push_back(std::move(host));
          continue;
        }
      }
      list.push_back(std::move(host));
      up.push_back({name, machine});
    }
    if (config_.provider.type != "kubernetes") {
      const auto state = cluster_state(config_.name);
      std::filesystem::create_directories(state);
      if (auto text = SshAccess::ssh_config_text(config_, state, up); text != offered_) {
        replace_file(ssh_config_file(), text);
        offered_ = std::move(text);
      }
    }
    return list;
  }

  void say(const std::string& line) {
    notices_->say(fmt::format("cluster '{}': {}", config_.name, line));
    {
      const std::lock_guard lock(mutex_);
      ++lines_;
    }
    news_.notify_all();
  }

  CostReport so_far() const { return cluster_->journal().ledger().cost(wall_now(), config_.currency, true); }
  void write_cost(bool ended) {
    std::error_code ignored;
    if (cost_ && std::filesystem::is_directory(workload_.directory, ignored)) cost_->update(so_far(), ended);
  }

  // Called on the scaler's thread, at every tick.
  HostDemand demand() {
    if (setup_->tick) setup_->tick();
    if (const auto now = std::chrono::steady_clock::now(); running_ && now - written_ > std::chrono::seconds(5)) {
      written_ = now;
      write_cost(false);
    }
    return tracker_->demand();
  }

  remote::HostList hosts() const {
    auto list = scaler_->hosts();
    std::erase_if(list, [&](const auto& host) { return !host_fits(host, workload_.each); });  // such as a small head
    return list;
  }

  void finish() {
    if (!scaler_) return;
    const std::stop_source end;
    const ScopedInterruptWatch watch(workload_, end);
    running_ = false;
    tracker_->ended();
    run_.request_stop();  // set-ups in progress are abandoned
    scaler_->stop();
    cluster_->set_stop(end.get_token());
    DownOptions down;
    const auto machines = cluster_->reconcile();
    const bool brought_up = std::any_of(machines.begin(), machines.end(), [](const auto& machine) {
      return machine.head && machine.state != MachineState::terminated;
    });
    down.workers_only = down.keep_min_workers = brought_up;
    down.why = "the run has ended";
    const int ended = cluster_->down(down);
    if (ended > 0) say(fmt::format("{} machine{} ended", ended, ended == 1 ? "" : "s"));
    write_cost(true);
  }

  std::shared_ptr<const ClusterSetup> setup_;
  ClusterConfig config_;
  Workload workload_;
  std::shared_ptr<remote::Notices> notices_;
  std::shared_ptr<remote::DemandTracker> tracker_;
  std::stop_source run_;  // stopped by a Ctrl-C before the experiment handles signals, and at the end
  std::atomic<bool> running_{false};
  std::optional<AnyProvider> provider_;  // only without `grow`
  std::string offered_;                  // the last ssh_config written by standing(), which one thread calls at a time
  remote::HostList too_small_;           // machines that are up but too small for a trial
  std::unique_ptr<Cluster> cluster_;
  std::optional<CostFile> cost_;
  std::chrono::steady_clock::time_point written_{};
  std::mutex mutex_;
  std::condition_variable_any news_;
  std::uint64_t lines_ = 0;
  std::unique_ptr<ClusterScaler> scaler_;  // its threads use the members above
};

}  // namespace detail

ClusterExecutor::ClusterExecutor(ClusterSetup setup)
    : ElasticExecutor(
          "ssh", [setup = std::make_shared<const ClusterSetup>(std::move(setup))](const Workload& workload) {
            try {
              return detail::ClusterRun::experiment(
                  std::make_shared<detail::ClusterRun>(setup, load_cluster(setup->file, setup->overrides), workload));
            } catch (const Interrupted&) { throw InterruptedEarly(); }
          }) {}

}  // namespace hypertune::inline v0::cluster
