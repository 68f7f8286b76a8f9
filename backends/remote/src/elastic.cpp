// ElasticExecutor: workers that follow the queue of trials.
#include "pool_run.hpp"

#include <hypertune/remote/ordered_wait_notice.hpp>
#include <hypertune/remote/partial_group_release.hpp>
#include <hypertune/remote/worker_scaler.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>

namespace hypertune::inline v0::remote {
namespace detail {

using hypertune::detail::steady_seconds;

// Fails before a worker is requested in vain.
void require_room(const ElasticPlan& plan, const Resources& each) {
  const auto require = [&](const char* what, const char* resource, double needs, const auto& amount) {
    double has = 0;
    for (const auto& worker : plan.workers) has = std::max(has, static_cast<double>(amount(worker.total)));
    if (hypertune::detail::fits(needs, has)) return;
    if (const auto option = plan.options.find(resource); option != plan.options.end())
      fail(Errc::resources,
           "a trial needs {0} {1} (resources.{2}), and a worker has {3} ({4}): raise {4}, or lower resources.{2}",
           needs, what, resource, has, option->second);
    fail(Errc::resources, "a trial needs {} {}, and no {} has more than {}", needs, what, plan.kind, has);
  };
  require("cpus", "cpus", each.cpus, [](const Resources& r) { return r.cpus; });
  require("gpus", "gpus", each.gpus, [](const Resources& r) { return r.gpus; });
  require("bytes of memory", "memory", static_cast<double>(each.memory), [](const Resources& r) { return r.memory; });
}

/// One experiment. Its thread decides which workers are requested or ended, and calls the backend's poll().
class ElasticRun final : public PoolRun, public ElasticWorkers {
 public:
  ElasticRun(ElasticExperiment experiment, std::shared_ptr<Notices> notices, const Workload& workload)
      : PoolRun(std::move(experiment.hooks), std::move(notices), nullptr), plan_(std::move(experiment.plan)) {
    if (plan_.workers.empty()) fail(Errc::usage, "there is no {}", plan_.kind);
    if (workload.trials == 0) return;  // nothing to do
    require_room(plan_, workload.each);
    // Workers are requested for the maximum size of a trial, although it can start with its minimum.
    Workload asked = workload;
    asked.workers = workload.max_workers;
    tracker_ = std::make_shared<DemandTracker>(asked);
    const int count = static_cast<int>(plan_.workers.size());
    // If trials are decided in order, the number of workers is constant from the start.
    ordered_ = workload.ordered;
    all_ = plan_.keep_all || ordered_;
    const int slots = plan_.remote.reuse ? slots_of(plan_.workers.front().total, workload.each) : 1;
    scaler_.emplace(PoolSize{std::min(plan_.min, count), count}, slots, plan_.idle_timeout, all_);
    group_ = workload.workers;
    std::random_device device;
    group_release_.emplace(group_, slots, plan_.group_timeout, (std::uint64_t{device()} << 32U) + device());
    launch(scaler_->step(steady_seconds(), worker_states()).launch);
    plan_.remote.interchangeable = true;
    executor_.emplace(pool_, plan_.remote);
  }
  ~ElasticRun() override { stop_following(); }

  /// The requested workers; does not wait for them.
  std::vector<Host> hosts() override {
    std::vector<Host> hosts;
    for (std::size_t i = 0; i < plan_.workers.size(); ++i)
      if (!executor_ || scaler_->launched(static_cast<int>(i)))
        hosts.push_back({plan_.workers[i].name, plan_.workers[i].total, Presence::coming, plan_.remote.reuse ? 0 : 1});
    return hosts;
  }
  void start(ExecutorStart start) override {
    // With a constant number of workers, a worker that ends is replaced, so trials keep their place.
    if (all_)
      start.sink = [sink = std::move(start.sink)](Event event) {
        if (auto* lost = std::get_if<HostLost>(&event); lost != nullptr && lost->removed) {
          lost->removed = false;
          lost->coming = true;
        }
        sink(std::move(event));
      };
    // A worker that has run its attempt is replaced at once.
    if (!plan_.remote.reuse)
      start.sink = [this, sink = std::move(start.sink)](Event event) {
        const bool ends = std::holds_alternative<Finished>(event) || std::holds_alternative<Stopped>(event) ||
                          std::holds_alternative<Paused>(event) || std::holds_alternative<Failed>(event);
        sink(std::move(event));
        if (ends) wake();
      };
    next_poll_ = steady_seconds() + 1;
    PoolRun::start(std::move(start));
  }

  std::vector<HostAccount> accounts() const override { return host_accounts(); }
  void explain(const std::string& worker, std::string why) override {
    why_[worker] = why;
    pool_.explain(worker, std::move(why));
  }
  void refuse(const std::string& worker, std::string why) override { pool_.refuse(worker, std::move(why)); }
  void set_without_room(const std::vector<std::string>& workers) override {
    without_room_ = {workers.begin(), workers.end()};
    pool_.set_without_room(without_room_);
  }
  void give_notice(const std::string& worker, std::string why, Seconds left) override {
    pool_.give_notice(worker, std::move(why), left);
  }

 private:
  void launch(const std::vector<int>& workers) {
    for (const int worker : workers) {
      const auto& one = plan_.workers[static_cast<std::size_t>(worker)];
      pool_.add({.name = one.name, .dialer = one.dialer});
      pool_.explain(one.name, plan_.asked);
    }
  }
  void end_workers(const std::vector<int>& workers, const std::string& why) {
    for (const int worker : workers) {
      const auto& name = plan_.workers[static_cast<std::size_t>(worker)].name;
      pool_.remove(name, why);
      if (hooks_.ended) hooks_.ended(name);
    }
  }

  // Releases workers that have run their one attempt. Must be called before replacements with the same names are
  // requested. Returns false if there are none.
  bool release_retired() {
    const auto retired = pool_.take_retired();
    for (const auto& name : retired) {
      const auto worker = std::find_if(plan_.workers.begin(), plan_.workers.end(),
                                       [&](const ElasticWorker& each) { return each.name == name; });
      scaler_->ended(static_cast<int>(worker - plan_.workers.begin()));
      tracker_->host_ended(name);
      if (hooks_.ended) hooks_.ended(name);
    }
    return !retired.empty();
  }

  // Gives back workers of an incomplete group for which there is no more room: another experiment may need them.
  void give_back(double now, const WorkerStates& seen) {
    std::vector<bool> launched;
    std::set<int> without_room;
    for (std::size_t i = 0; i < plan_.workers.size(); ++i) {
      launched.push_back(scaler_->launched(static_cast<int>(i)));
      if (without_room_.contains(plan_.workers[i].name)) without_room.insert(static_cast<int>(i));
    }
    const auto given = group_release_->step(now, seen, launched, without_room);
    if (given.empty()) return;
    for (const int worker : given) scaler_->ended(worker);
    end_workers(given, "the others of its group found no room");
    notices_->say(
        fmt::format("a trial needs {} workers at once, and there is room for a part of them only: that is given back, "
                    "and asked for again in a while",
                    group_));
  }

  // Tells the user why an ordered run stands still, and how to fix it.
  void report_ordered_wait(double now, const WorkerStates& seen) {
    const auto first = without_room_.begin();
    const auto line =
        wait_notice_.look(static_cast<int>(plan_.workers.size()), static_cast<int>(without_room_.size()),
                          first == without_room_.end() ? std::string() : why_[*first], seen.waiting > 0, now);
    if (!line.empty()) notices_->say(line);
  }

  WorkerStates worker_states() const {
    WorkerStates seen;
    const auto demand = tracker_->demand();
    for (const auto& shape : demand.pending) seen.waiting += shape.count;
    std::map<std::string, HostState> states;
    for (const auto& account : accounts()) states[account.name] = account.state;
    for (const auto& worker : plan_.workers) {
      const auto running = demand.running.find(worker.name);
      seen.running.push_back(running == demand.running.end() ? 0 : static_cast<int>(running->second.size()));
      const auto state = states.find(worker.name);
      seen.up.push_back(state != states.end() && is_usable(state->second));
    }
    return seen;
  }

  Seconds interval() const override { return 0.25; }
  std::string failure() const override { return "workers cannot be looked after"; }
  void interrupt() override {
    if (hooks_.stop) hooks_.stop();
  }
  void look() override {
    try {
      scale();
    } catch (...) {
      next_poll_ = steady_seconds() + 5;
      throw;
    }
  }

  void scale() {
    const double now = steady_seconds();
    if (release_retired()) next_poll_ = now;  // the backend should look at once: others need the room
    const auto seen = worker_states();
    give_back(now, seen);
    if (ordered_) report_ordered_wait(now, seen);
    // No worker is kept for trials that will never come.
    if (!group_release_->pauses(now) && !seen.over()) {
      const auto orders = scaler_->step(now, seen);
      launch(orders.launch);
      end_workers(orders.end_workers, "no trial needs it now");
    }
    if (hooks_.poll && steady_seconds() >= next_poll_) next_poll_ = steady_seconds() + hooks_.poll(*this);
  }

  ElasticPlan plan_;
  std::optional<WorkerScaler> scaler_;
  std::optional<PartialGroupRelease> group_release_;
  int group_ = 1;                           // minimum number of workers of a trial
  std::set<std::string> without_room_;      // as last reported by the backend
  std::map<std::string, std::string> why_;  // the last reason per worker
  OrderedWaitNotice wait_notice_;
  bool all_ = false;  // the number of workers is always the maximum
  bool ordered_ = false;
  double next_poll_ = 0;
};

}  // namespace detail

struct ElasticExecutor::State final : public hypertune::detail::ExecutorState {
  State(std::string name_of_it, Make maker) : name(std::move(name_of_it)), make(std::move(maker)) {}

  ~State() override { end_run(false); }

  std::vector<Host> hosts() override { return current().hosts(); }
  void start(ExecutorStart start) override { current().start(std::move(start)); }
  void perform(Command command) override { current().perform(std::move(command)); }
  void wait(Seconds deadline) override { current().wait(deadline); }
  void notify() override {
    if (run) run->notify();
  }
  void shutdown() override {
    if (run) run->shutdown();
  }

  detail::PoolRun& current() const {
    if (!run) fail(Errc::usage, "workers of {} are for experiments: a Tuner says what it needs of them", name);
    return *run;
  }
  void begin_run(ElasticExperiment experiment, const Workload& workload) {
    auto notices = std::move(experiment.notices);
    if (!notices) notices = std::make_shared<Notices>(said_by({}, workload.quiet, "hypertune: "));
    if (experiment.listed)
      run = detail::make_listed_run(std::move(*experiment.listed), std::move(experiment.hooks), std::move(notices),
                                    std::move(experiment.demand));
    else
      run = std::make_unique<detail::ElasticRun>(std::move(experiment), std::move(notices), workload);
  }
  void end_run(bool unfinished) {
    if (run) run->finish(unfinished);
    run.reset();
  }

  std::string name;
  Make make;  // nullptr: one run for all experiments
  std::unique_ptr<detail::PoolRun> run;
};

ElasticExecutor::ElasticExecutor(std::string name, Make make)
    : ExecutorHandle(std::make_shared<State>(std::move(name), std::move(make))) {}
ElasticExecutor::ElasticExecutor(std::string name, ElasticExperiment listed)
    : ElasticExecutor(std::move(name), Make()) {
  state<State>().begin_run(std::move(listed), {});
}

void ElasticExecutor::prepare(const Workload& workload) {
  auto& self = state<State>();
  if (!self.make) return;
  self.end_run(false);
  self.begin_run(self.make(workload), workload);
}
std::string ElasticExecutor::name() const { return state<State>().name; }
void ElasticExecutor::trial_ended(TrialId trial) {
  if (const auto& run = state<State>().run) run->trial_ended(trial);
}
void ElasticExecutor::teardown(bool unfinished) {
  if (auto& self = state<State>(); self.make) self.end_run(unfinished);
}
std::vector<HostAccount> ElasticExecutor::accounts() const {
  const auto& run = state<State>().run;
  return run ? run->host_accounts() : std::vector<HostAccount>();
}

}  // namespace hypertune::inline v0::remote
