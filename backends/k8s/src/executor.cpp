// KubernetesExecutor: the part of the executor that is specific to pods.
#include "agent_program.hpp"
#include "checkpoint_volume.hpp"
#include "json_at.hpp"
#include "options_access.hpp"
#include "own_pod.hpp"
#include "permissions.hpp"
#include "pod_dialer.hpp"
#include "pod_fleet.hpp"
#include "pod_manifest.hpp"
#include "pod_termination_watch.hpp"
#include "pod_token.hpp"
#include "process_variable.hpp"
#include "reverse_pod_dialer.hpp"

#include <hypertune/checkpoint/detail/content_hash.hpp>
#include <hypertune/detail/read_file.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/k8s/agent_listener.hpp>
#include <hypertune/k8s/client.hpp>
#include <hypertune/k8s/driver_job.hpp>
#include <hypertune/k8s/executor.hpp>
#include <hypertune/remote/notices.hpp>
#include <hypertune/remote/waiting_lines.hpp>
#include <hypertune/remote/worker_scaler.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>

#include <algorithm>
#include <memory>
#include <stop_token>
#include <utility>

namespace hypertune::inline v0::k8s {
namespace detail {

using hypertune::detail::steady_seconds;
using remote::HostState;

// A label that distinguishes this experiment from all others in the namespace, and stays the same when it is resumed.
std::string experiment_label_of(const Workload& workload) {
  if (auto given = variable_of_process("HYPERTUNE_EXPERIMENT_LABEL")) return *std::move(given);
  utsname system{};
  ::uname(&system);
  const std::string machine = hypertune::detail::read_file("/etc/machine-id").value_or("");
  const auto directory = std::filesystem::absolute(workload.directory).lexically_normal().string();
  const auto hash = hypertune::detail::ContentHash::of(fmt::format("{}\n{}\n{}", machine, system.nodename, directory));
  return fmt::format("{}-{}", kubernetes_name(workload.name, 30), hash.substr(0, 10));
}

/// The pods of one experiment's workers.
class PodManager {
 public:
  PodManager(const KubernetesSetup& setup, const Workload& workload)
      : setup_(setup),
        transfer_(transfer_of(setup.options)),
        notices_(std::make_shared<remote::Notices>(remote::said_by(setup.say, workload.quiet, "hypertune: "))),
        client_(load_access(access_of(setup.options))),
        program_(setup, client_) {
    // In a pod: without these rights it would look as if this driver were outside of the cluster.
    if (variable_of_process("KUBERNETES_SERVICE_HOST"))
      require_permissions(client_, permissions_for({Use::workers}), stop_.get_token());
    own_ = find_own_pod(client_, stop_.get_token());
    const bool direct = own_ && !setup.options.program.empty() && setup.options.connection != Connection::exec;
    if (setup.options.connection == Connection::direct && !direct)
      fail(Errc::usage, "executor.connection is direct, {}",
           own_ ? "which needs the program in the image: name it by executor.program"
                : "but this driver is no pod of the namespace, or its account may not look at pods: write exec");
    require_permissions(client_, permissions_for(uses(direct)), stop_.get_token());
    if (own_ && workload.handle_signals)
      termination_watch_.emplace(client_, own_->name,
                                 [notices = notices_](const std::string& line) { notices->say(line); });
    const auto label = experiment_label_of(workload);
    FleetPlan plan{.name = kubernetes_name(label), .experiment = label, .command = program_.container_command()};
    if (own_) plan.owner = own_->owner;
    if (direct) {
      plan.secret = plan.name + "-token";
      auto token = pod_token(client_, plan.secret, label, own_->owner, stop_.get_token());
      listener_.emplace(ListenerOptions{.token = std::move(token),
                                        .experiment = label,
                                        .silence = setup.options.heartbeat_timeout,
                                        .say = [notices = notices_](const std::string& line) { notices->say(line); }});
      plan.driver = listener_->address(own_->ip).to_string();
    }
    most_ = workload.useful_workers(setup_.options.pool.max);
    plan.gang = gang_of(workload);
    fleet_ = std::make_shared<PodFleet>(client_, setup_.options, std::move(plan), notices_);
  }

  const std::shared_ptr<remote::Notices>& notices() const { return notices_; }

  remote::ElasticPlan plan() const {
    const auto& options = setup_.options;
    remote::ElasticPlan plan{
        .min = options.pool.min,
        .idle_timeout = options.idle_timeout,
        .group_timeout = options.group_timeout,
        .remote = remote_options(),
        .options = {{"cpus", "executor.cpus"}, {"gpus", "executor.gpus"}, {"memory", "executor.memory"}}};
    for (int i = 1; i <= most_; ++i) {
      const auto name = fmt::format("worker-{}", i);
      plan.workers.push_back({.name = name, .total = program_.resources(), .dialer = dialer(name)});
    }
    return plan;
  }

  Seconds poll(remote::ElasticWorkers& workers) {
    for (const auto& pod : fleet_->reconcile(stop_.get_token())) {
      const auto accounts = workers.accounts();
      const bool serves = std::any_of(accounts.begin(), accounts.end(), [&](const auto& account) {
        return account.name == pod.worker && is_usable(account.state);
      });
      // The pod's keeper also tells the agent; the first of the two notices counts.
      const auto what = fmt::format("pod {} on node {} {}", pod.name, pod.node.empty() ? "-" : pod.node, pod.sentence);
      if (pod.phase == PodState::Phase::running) workers.give_notice(pod.worker, what, static_cast<Seconds>(pod.grace));
      // give_notice() tells the user if the pod serves trials.
      if (pod.disrupted && !(serves && pod.phase == PodState::Phase::running))
        notices_->say(fmt::format("{}: {}", pod.worker, what));
    }
    bool some_run = false;
    for (const auto& account : workers.accounts()) some_run = some_run || is_usable(account.state);
    std::vector<remote::WaitingWorker> waiting;
    std::vector<std::string> without_room;
    for (const auto& worker : fleet_->waiting()) {
      if (worker.cannot_start)
        workers.refuse(worker.worker, worker.sentence);
      else
        workers.explain(worker.worker, worker.sentence);
      if (worker.word == "Unschedulable" || worker.word == "Quota" || worker.word == "SchedulingGated")
        without_room.push_back(worker.worker);
      // A pod that is just starting needs no line.
      if (worker.word != "ContainerCreating" && worker.word != "Pending")
        waiting.push_back({worker.word, worker.sentence});
    }
    workers.set_without_room(without_room);
    tell_trouble();
    if (waiting.empty()) lines_.clear();
    if (const auto line = lines_.look(waiting, "for Kubernetes", some_run, steady_seconds()); !line.empty())
      notices_->say(line);
    return 0.5;
  }
  void ended(const std::string& worker) { fleet_->release(worker); }
  void stop() { stop_.request_stop(); }
  // A driver that is a Job is started again unless it was told to end; then its workers are left waiting for it.
  void finish(bool unfinished) {
    if (unfinished && goes_on_as_job()) return;
    fleet_->finish();
  }

 private:
  std::vector<Use> uses(bool direct) const {
    std::vector<Use> all{Use::workers, direct ? Use::direct : Use::exec};
    if (!setup_.options.file_mounts.empty()) all.push_back(Use::files);
    if (!setup_.options.gpu_class.empty()) all.push_back(Use::claims);
    if (setup_.options.max_memory > 0) all.push_back(Use::resize);
    if (!own_) all.push_back(Use::owner_job);
    if (own_ && own_->owner.kind == "Job") all.push_back(Use::job);
    if (variable_of_process(job_variable)) all.push_back(Use::submitted_job);
    return all;
  }

  // The scheduler may place a trial's pods all or none, if each trial has pods of its own.
  Gang gang_of(const Workload& workload) {
    const int slots = setup_.options.reuse ? remote::slots_of(program_.resources(), workload.each) : 1;
    const Gang gang{.pods = workload.max_workers / slots, .least = workload.workers / slots, .workers = most_};
    if (gang.least <= 1 || workload.workers % slots != 0 || workload.max_workers % slots != 0) return {};
    if (!knows_pod_groups(client_, stop_.get_token())) return {};
    const auto missing = missing_permissions(client_, permissions_for({Use::groups}), stop_.get_token());
    if (missing.empty()) return gang;
    notices_->say(fmt::format(
        "a trial's pods are not placed all or none, which this cluster could do: add to the rules of the Role: [{}]",
        fmt::join(role_rules(missing), ", ")));
    return {};
  }

  bool goes_on_as_job() {
    if (!own_ || own_->owner.kind != "Job") return false;
    try {
      const auto job = client_
                           .call({.path = api_path({"apis", "batch", "v1", "namespaces", client_.name_space(), "jobs",
                                                    own_->owner.name}),
                                  .deadline = 10})
                           .json();
      return text_at(job, "/metadata/deletionTimestamp").empty() && !has_condition(job, "Failed") &&
             !has_condition(job, "FailureTarget") && !flag_at(job, "/spec/suspend");
    } catch (const ApiError& error) {
      return !error.not_found();  // if in doubt, it is not being deleted
    }
  }

  using Connection = KubernetesOptions::Connection;

  remote::AnyDialer dialer(const std::string& worker) const {
    const auto prepare = [program = program_, fleet = fleet_](const PodState& pod, const std::stop_token& stop) {
      return program.prepare(pod.name, fleet->container(), stop);
    };
    if (listener_) return ReversePodDialer(fleet_, *listener_, worker, prepare, setup_.remote.timeouts.connect);
    return PodDialer(fleet_, worker, prepare);
  }

  void tell_trouble() {
    constexpr Seconds after = 5;
    const auto trouble = fleet_->trouble();
    if (trouble.empty()) {
      if (std::exchange(told_trouble_, false)) notices_->say("the API server of Kubernetes answers again");
      trouble_since_.reset();
      return;
    }
    if (!trouble_since_) trouble_since_ = steady_seconds();
    if (told_trouble_ || steady_seconds() - *trouble_since_ < after) return;
    told_trouble_ = true;
    notices_->say(fmt::format(
        "the API server of Kubernetes does not answer ({}): what runs goes on, and it is asked again", trouble));
  }

  remote::RemoteOptions remote_options() const {
    auto options = setup_.remote;
    options.reuse = setup_.options.reuse;
    if (setup_.options.max_memory > 0) {
      options.memory_used_up = [fleet = fleet_](const std::string& worker) { return fleet->give_more_memory(worker); };
      options.gets_memory = [fleet = fleet_](const std::string& worker) { return fleet->gets_memory(worker); };
    }
    options.timeouts.heartbeat = setup_.options.heartbeat_timeout;
    options.transfer = transfer_;
    options.timeouts.hello = options.timeouts.connect;
    options.timeouts.connect = 9e8;      // a pod may wait for a node for any length of time
    options.timeouts.first_delay = 0.1;  // a new pod replaces the lost one
    options.timeouts.stable = std::min(options.timeouts.stable, 10.0);  // independent of earlier pods
    options.dials = std::clamp(most_, 1, 4096);                         // no dial waits for the pod of another one
    options.timeouts.max_delay = std::min(options.timeouts.max_delay, 30.0);
    options.notice_grace = std::max(options.notice_grace, setup_.options.save_grace - 5);
    return options;
  }

  KubernetesSetup setup_;
  CheckpointTransfer transfer_;
  std::shared_ptr<remote::Notices> notices_;
  std::stop_source stop_;
  Client client_;
  AgentProgram program_;
  std::optional<OwnPod> own_ = {};                             // set if this driver runs in a pod
  std::optional<PodTerminationWatch> termination_watch_ = {};  // watches for the termination of that pod
  std::optional<AgentListener> listener_ = {};                 // where workers connect to this driver
  std::shared_ptr<PodFleet> fleet_;
  int most_ = 1;
  // Used only by the thread that calls poll().
  remote::WaitingLines lines_;
  std::optional<Seconds> trouble_since_ = {};
  bool told_trouble_ = false;
};

}  // namespace detail

KubernetesExecutor::KubernetesExecutor(KubernetesSetup setup)
    : ElasticExecutor("kubernetes", [setup = (setup.options.take_old_names(), setup)](const Workload& workload) {
        const auto pods = std::make_shared<detail::PodManager>(setup, workload);
        return remote::ElasticExperiment{
            .plan = pods->plan(),
            .hooks = {.poll = [pods](remote::ElasticWorkers& workers) { return pods->poll(workers); },
                      .stop = [pods] { pods->stop(); },
                      .ended = [pods](const std::string& worker) { pods->ended(worker); },
                      .finish = [pods](bool unfinished) { pods->finish(unfinished); }},
            .notices = pods->notices()};
      }) {
  check_workers(setup.options);
  setup.remote.validate();
}

}  // namespace hypertune::inline v0::k8s
