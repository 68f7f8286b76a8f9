// ClusterScaler: carries out the autoscaler's decisions.
#include <hypertune/cluster/scaler.hpp>
#include <hypertune/detail/say.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

namespace hypertune::inline v0::cluster {

struct ClusterScaler::State {
  struct Unit {
    Machine machine;
    std::size_t type = 0;
    bool head = false, ready = false, draining = false;
    bool reachable = false;      // the cluster's MachineAccess knows it
    mutable bool heard = false;  // the executor has called hosts() since the drain began
    Seconds draining_since = 0;
    std::optional<Resources> has;
  };
  struct Work {  // a task for the worker threads, which may block
    std::string token;
    LaunchMachine launch;
    std::optional<Machine> known;  // an existing machine that only needs its set-up
    std::vector<Machine> end;      // machines to terminate
    std::string why;
  };
  struct News {  // a result for the deciding thread
    std::string token, error;
    ProviderFailure kind = ProviderFailure::failed;
    std::optional<Machine> machine;
    std::optional<Resources> has;
    bool ready = false, failed = false;
  };

  State(Cluster& c, std::function<HostDemand()> d, ScalerOptions o)
      : cluster(c), demand(std::move(d)), options(std::move(o)), scaler(autoscaler_options(c.config())) {}

  Cluster& cluster;
  std::function<HostDemand()> demand;
  ScalerOptions options;
  mutable std::mutex mutex;  // guards all below
  std::condition_variable_any changed, work_there;
  Autoscaler scaler;
  std::map<std::string, Unit> units;
  std::deque<Work> work;
  std::vector<News> news;
  std::vector<Resources> cannot;
  bool woken = false, stopping = false, any_ready = false;
  int failures = 0;  // of launches since the last success, except for lack of capacity
  std::string last_failure;
  std::vector<std::jthread> workers;
  std::jthread decider;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();

  Seconds now() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); }
  void log(const std::string& line) const {
    if (options.log) options.log(line);
  }
  std::string name_of(const Machine& machine) const { return host_name(cluster.config(), machine); }

  void enter_known() {
    for (const auto& machine : cluster.reconcile()) {
      if (machine.state != MachineState::pending && machine.state != MachineState::running) continue;
      const auto* type = cluster.config().find_type(machine.node_type);
      Unit unit;
      unit.machine = machine;
      unit.head = machine.head;
      unit.type =
          type != nullptr ? static_cast<std::size_t>(type - cluster.config().types.data()) : cluster.config().head_type;
      scaler.machine_added(machine.token, unit.type, machine.spot, machine.head, false, now());
      units[machine.token] = unit;
      Work task;
      task.token = machine.token;
      task.known = machine;
      work.push_back(std::move(task));
    }
  }

  // The loop of each worker thread, which carries out slow operations.
  void worker_loop(const std::stop_token& stop) {
    for (;;) {
      Work task;
      {
        std::unique_lock lock(mutex);
        if (!work_there.wait(lock, stop, [&] { return !work.empty(); })) return;
        task = std::move(work.front());
        work.pop_front();
      }
      News told;
      told.token = task.token;
      try {
        if (!task.end.empty()) {
          cluster.terminate(task.end, task.why, false);
          continue;
        }
        Machine machine;
        if (task.known) {
          machine = *task.known;
        } else {
          const auto& type = cluster.config().types[task.launch.type];
          machine = cluster.launch(type, task.launch.spot, false, task.token);
        }
        told.machine = machine;
        tell(told);
        const auto report = options.set_up ? options.set_up(machine) : cluster.set_up(machine);
        told.machine = report.machine;
        told.has = report.resources;
        told.ready = report.error.empty();
        told.failed = !told.ready;
        told.error = report.error;
      } catch (const ProviderError& error) {
        told.failed = true;
        told.kind = error.kind();
        told.error = error.what();
      } catch (const std::exception& error) {
        told.failed = true;
        told.error = error.what();
      }
      tell(told);
    }
  }
  void tell(const News& told) {
    {
      const std::lock_guard lock(mutex);
      news.push_back(told);
    }
    changed.notify_all();
  }

  // The lock must be held.
  void take_news(std::vector<std::string>& lines) {
    for (auto& told : std::exchange(news, {})) {
      const auto found = units.find(told.token);
      if (found == units.end()) continue;
      if (told.machine) found->second.machine = *told.machine;
      if (told.ready) {
        found->second.ready = any_ready = true;
        failures = 0;
        found->second.has = told.has;
        scaler.ready(told.token, told.has, now());
        lines.push_back(fmt::format("{} is ready", name_of(found->second.machine)));
      } else if (told.failed) {
        lines.push_back(
            fmt::format("no machine ({}): {}", cluster.config().types[found->second.type].name, told.error));
        if (told.machine && !found->second.head && !found->second.machine.id.empty()) {  // it exists but is useless
          Work task;
          task.end = {found->second.machine};
          task.why = "could not be set up";
          work.push_back(std::move(task));
          work_there.notify_one();
        }
        if (told.kind != ProviderFailure::capacity) {
          failures += told.kind == ProviderFailure::invalid ? 2 : 1;
          last_failure = told.error;
        }
        scaler.launch_failed(told.token, told.kind, told.error, now());
        units.erase(found);
      }
    }
  }

  void act(const ScaleDecision& decision) {
    for (const auto& action : decision.actions) {
      if (const auto* launch = std::get_if<LaunchMachine>(&action)) {
        Work task;
        task.token = new_token();
        task.launch = *launch;
        scaler.launching(task.token, *launch, now());
        Unit unit;
        unit.type = launch->type;
        unit.machine.token = task.token;
        unit.machine.spot = launch->spot;
        units[task.token] = unit;
        work.push_back(std::move(task));
        work_there.notify_one();
      } else if (const auto* drain = std::get_if<DrainMachine>(&action)) {
        if (const auto found = units.find(drain->token); found != units.end()) {
          found->second.draining = true;
          found->second.heard = false;
          found->second.draining_since = now();
        }
      } else if (const auto* undrain = std::get_if<UndrainMachine>(&action)) {
        if (const auto found = units.find(undrain->token); found != units.end()) found->second.draining = false;
      } else {
        const auto& end = std::get<TerminateMachine>(action);
        const auto found = units.find(end.token);
        if (found == units.end()) continue;
        if (!found->second.machine.id.empty()) {
          Work task;
          task.end = {found->second.machine};
          task.why = end.why;
          work.push_back(std::move(task));
          work_there.notify_one();
        }
        scaler.gone(end.token, now());
        units.erase(found);
      }
    }
  }

  // Removes machines that the provider no longer lists. The lock must be held.
  void drop_lost(const std::vector<Machine>& machines, const std::set<std::string>& asked_for,
                 std::vector<std::string>& lines) {
    for (auto it = units.begin(); it != units.end();) {
      const auto seen = std::find_if(machines.begin(), machines.end(), [&](const Machine& machine) {
        return machine.token == it->first &&
               (machine.state == MachineState::pending || machine.state == MachineState::running);
      });
      if (seen == machines.end() && asked_for.contains(it->first)) {
        lines.push_back(
            fmt::format("{} is gone: the provider took it, or somebody else ended it", name_of(it->second.machine)));
        scaler.gone(it->first, now());
        it = units.erase(it);
      } else {
        ++it;
      }
    }
  }

  void decide(const std::stop_token& stop) {
    double next_look = options.poll;
    std::string failed;
    while (!stop.stop_requested()) {
      try {
        decide_once(next_look);
        failed.clear();
      } catch (const std::exception& error) {  // machines that are there go on
        if (std::exchange(failed, error.what()) != error.what())
          hypertune::detail::say(fmt::format("hypertune: machines cannot be looked after, tries again: {}", failed));
      }
      std::unique_lock lock(mutex);
      changed.wait_for(lock, stop, std::chrono::duration<double>(options.tick), [&] { return woken || !news.empty(); });
      woken = false;
    }
  }

  void decide_once(double& next_look) {
    std::vector<std::string> lines;
    if (now() >= next_look) {
      std::set<std::string> ready;
      {
        const std::lock_guard lock(mutex);
        for (const auto& [token, unit] : units)
          if (unit.ready) ready.insert(token);
      }
      try {
        const auto machines = cluster.observe();
        const std::lock_guard lock(mutex);
        drop_lost(machines, ready, lines);
      } catch (const std::exception& error) {
        lines.push_back(fmt::format("the provider cannot be asked: {}", error.what()));
      }
      next_look = now() + options.poll;
    }
    HostDemand asked;
    bool known = true;
    std::set<std::string> unacknowledged_drains;  // as of before demand() is called
    {
      const std::lock_guard lock(mutex);
      for (const auto& [token, unit] : units)
        if (unit.draining && !unit.heard && now() < unit.draining_since + 60) unacknowledged_drains.insert(token);
    }
    try {
      asked = demand();
    } catch (const std::exception& error) {
      known = false;
      lines.push_back(fmt::format("the queue cannot be asked: {}", error.what()));
    }
    {
      std::unique_lock lock(mutex);
      take_news(lines);
      if (known) {
        Demand converted;
        converted.pending = std::move(asked.pending);
        converted.unacknowledged_drains = std::move(unacknowledged_drains);
        for (const auto& [token, unit] : units)
          if (const auto busy = asked.running.find(name_of(unit.machine));
              !unit.machine.id.empty() && busy != asked.running.end() && !busy->second.empty())
            converted.running[token] = busy->second;
        auto decision = scaler.decide(converted, now());
        cannot = std::move(decision.impossible);
        act(decision);
        lines.insert(lines.end(), decision.log.begin(), decision.log.end());
      }
    }
    offer();
    for (const auto& line : lines) log(line);
  }

  remote::HostList hosts() const {
    const std::lock_guard lock(mutex);
    remote::HostList list;
    for (const auto& [token, unit] : units) {
      if (unit.draining) unit.heard = true;
      if (!unit.ready || !unit.reachable || unit.draining) continue;
      const auto& type = cluster.config().types[unit.type];
      remote::HostOptions host;
      host.name = name_of(unit.machine);
      if (const auto& has = type.resources_known ? std::optional(type.resources) : unit.has) {
        host.cpus = has->cpus;
        host.gpus = has->gpus;
        host.memory = type.resources_known ? has->memory : 0;
        host.custom = has->custom;
      }
      host.labels = {{"type", type.name}, {"market", unit.machine.spot ? "spot" : "on-demand"}};
      list.push_back(std::move(host));
    }
    return list;
  }

  // Called before they are listed as hosts, because the executor must be able to reach them.
  void offer() {
    std::vector<OfferedMachine> machines;
    {
      const std::lock_guard lock(mutex);
      for (const auto& [token, unit] : units)
        if (unit.ready) machines.push_back({name_of(unit.machine), unit.machine});
    }
    cluster.access().offer(cluster, machines);
    const std::lock_guard lock(mutex);
    for (const auto& offered : machines)
      if (const auto found = units.find(offered.machine.token); found != units.end()) found->second.reachable = true;
  }
};

ClusterScaler::ClusterScaler(Cluster& cluster, std::function<HostDemand()> demand, ScalerOptions options)
    : state_(std::make_shared<State>(cluster, std::move(demand), std::move(options))) {
  state_->enter_known();
  state_->offer();
  for (int i = 0; i < 8; ++i)
    state_->workers.emplace_back([impl = state_.get()](const std::stop_token& stop) { impl->worker_loop(stop); });
  state_->decider = std::jthread([impl = state_.get()](const std::stop_token& stop) { impl->decide(stop); });
}
ClusterScaler::~ClusterScaler() { stop(); }

void ClusterScaler::stop() {
  state_->decider.request_stop();
  if (state_->decider.joinable()) state_->decider.join();
  {
    const std::lock_guard lock(state_->mutex);  // tasks that have not begun are dropped, except terminations
    std::erase_if(state_->work, [](const State::Work& task) { return task.end.empty(); });
  }
  for (auto& worker : state_->workers) worker.request_stop();
  state_->workers.clear();
}

remote::HostList ClusterScaler::hosts() const { return state_->hosts(); }
remote::HostSource ClusterScaler::host_source(Seconds interval) const {
  return remote::HostSource::callback([impl = state_] { return impl->hosts(); }, interval);
}
void ClusterScaler::require_possible(const Resources& needs) const {
  const std::lock_guard lock(state_->mutex);
  if (const auto why = state_->scaler.why_never(needs)) throw Error(Errc::resources, *why);
}
std::vector<Resources> ClusterScaler::impossible() const {
  const std::lock_guard lock(state_->mutex);
  return state_->cannot;
}
std::optional<std::string> ClusterScaler::why_no_machine() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->any_ready || state_->failures < 3 || !state_->units.empty()) return std::nullopt;
  return state_->last_failure;
}
CostReport ClusterScaler::cost() const {
  return state_->cluster.journal().ledger().cost(wall_now(), state_->cluster.config().currency);
}
void ClusterScaler::wake() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->woken = true;
  }
  state_->changed.notify_all();
}

}  // namespace hypertune::inline v0::cluster
