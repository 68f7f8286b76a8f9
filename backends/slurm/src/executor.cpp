// SlurmExecutor: one experiment on workers of Slurm.
#include "queue.hpp"
#include "srun.hpp"
#include "worker_scaler.hpp"
#include "workers.hpp"

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/detail/signal_block.hpp>
#include <hypertune/remote/demand.hpp>
#include <hypertune/remote/host_pool.hpp>
#include <hypertune/remote/notices.hpp>
#include <hypertune/slurm/executor.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hypertune::inline v0::slurm {
namespace detail {

using remote::HostState;

/// One experiment on Slurm. A thread of it decides who is launched and who ends, and asks the queue.
class SlurmRun {
 public:
  SlurmRun(const SlurmSetup& setup, const Workload& workload)
      : setup_(setup),
        workload_(workload),
        notices_(std::make_shared<remote::Notices>(remote::said_by(setup.say, workload.quiet, "hypertune: "))),
        workers_(make_workers(setup, workload.name, most_workers(workload), left_)) {
    if (workers_.all.empty()) fail(Errc::usage, "the Slurm allocation has no node");
    if (workload_.trials == 0) return;  // nothing is left to do
    require_room();
    tracker_ = std::make_shared<remote::DemandTracker>(workload_);
    const int count = static_cast<int>(workers_.all.size());
    auto bounds = setup_.options.workers;
    bounds.max = count;
    bounds.min = std::min(bounds.min, count);
    // Nodes that are ours anyway are used, and where all is decided in order there are as many places from the start
    // on.
    const bool all = !workers_.own_jobs || workload_.ordered;
    scaler_.emplace(bounds, slots_of(workers_.all.front().total, workload_.each), setup_.options.idle, all);
    launch(scaler_->step(hypertune::detail::steady_seconds(), sight()).launch);
    executor_.emplace(remote::RemoteExecutor(pool_, remote_options()), tracker_, notices_);
  }
  SlurmRun(const SlurmRun&) = delete;
  SlurmRun& operator=(const SlurmRun&) = delete;
  ~SlurmRun() { finish(); }

  bool idle() const { return !executor_; }
  remote::TrackedExecutor<remote::RemoteExecutor>& executor() { return *executor_; }
  remote::DemandTracker& tracker() { return *tracker_; }

  /// Those that have been asked for: none of them is waited for.
  std::vector<Host> hosts() const {
    std::vector<Host> hosts;
    for (std::size_t i = 0; i < workers_.all.size(); ++i)
      if (idle() || scaler_->launched(static_cast<int>(i)))
        hosts.push_back({workers_.all[i].name, workers_.all[i].total, Presence::coming});
    return hosts;
  }

  void start(ExecutorStart start) {
    executor_->start(std::move(start));
    const hypertune::detail::SignalBlock block;
    thread_ = std::thread([this] { follow(); });
  }
  void shutdown() {
    stop_following();
    executor_->shutdown();
  }

 private:
  // Never more workers than trials that can run at once.
  static int most_workers(const Workload& workload) {
    constexpr std::int64_t any = std::numeric_limits<int>::max();
    const auto trials = workload.trials.value_or(0);
    return static_cast<int>(
        std::min({any, trials > 0 ? trials : any, workload.concurrency > 0 ? workload.concurrency : any}));
  }

  // Before a job is asked for in vain.
  void require_room() const {
    const auto& each = workload_.each;
    const auto& all = workers_.all;
    const auto most = [&](const auto& amount) {
      return amount(std::max_element(all.begin(), all.end(), [&](const auto& a, const auto& b) {
                      return amount(a.total) < amount(b.total);
                    })->total);
    };
    const auto refuse = [&](const char* what, const char* resource, const auto& needs, const auto& has,
                            const char* option) {
      if (workers_.own_jobs)
        fail(Errc::resources,
             "a trial needs {0} {1} (resources.{2}), and a worker has {3} (executor.{4}): raise executor.{4}, or lower "
             "resources.{2}",
             needs, what, resource, has, option);
      fail(Errc::resources, "a trial needs {} {}, and no node of the Slurm allocation has more than {}", needs, what,
           has);
    };
    constexpr double slack = 1e-9;
    if (const auto has = most([](const Resources& r) { return r.cpus; }); each.cpus > has + slack)
      refuse("cpus", "cpus", each.cpus, has, "cpus");
    if (const auto has = most([](const Resources& r) { return r.gpus; }); each.gpus > has + slack)
      refuse("gpus", "gpus", each.gpus, has, "gres");
    if (const auto has = most([](const Resources& r) { return r.memory; }); each.memory > has)
      refuse("bytes of memory", "memory", each.memory, has, "memory");
  }

  remote::RemoteOptions remote_options() const {
    auto options = setup_.remote;
    options.alike = true;
    options.timeouts.liveness = setup_.options.silence;
    options.timeouts.connect = 9e8;  // a job may wait in the queue for as long as it takes
    options.timeouts.max_delay = std::min(options.timeouts.max_delay, 30.0);
    options.notice_grace = std::max(options.notice_grace, setup_.options.notice);
    return options;
  }

  void launch(const std::vector<int>& workers) {
    for (const int worker : workers) {
      const auto& one = workers_.all[static_cast<std::size_t>(worker)];
      pool_.add({.name = one.name, .dialer = one.dialer});
      pool_.explain(one.name, "has been asked for, and Slurm has not said yet when it comes");
    }
  }
  void end_workers(const std::vector<int>& workers) {
    for (const int worker : workers)
      pool_.remove(workers_.all[static_cast<std::size_t>(worker)].name, "no trial needs it now");
  }

  WorkersSeen sight() const {
    WorkersSeen seen;
    const auto demand = tracker_->demand();
    for (const auto& shape : demand.pending) seen.waiting += shape.count;
    std::map<std::string, HostState> states;
    if (executor_)
      for (const auto& account : executor_->inner().accounts()) states[account.name] = account.state;
    for (const auto& worker : workers_.all) {
      const auto running = demand.running.find(worker.name);
      seen.running.push_back(running == demand.running.end() ? 0 : static_cast<int>(running->second.size()));
      const auto state = states.find(worker.name);
      seen.up.push_back(state != states.end() && is_usable(state->second));
    }
    return seen;
  }

  void follow() {
    constexpr double tick = 0.25;
    double next_look = hypertune::detail::steady_seconds() + 1;
    std::unique_lock hold(mutex_);
    while (!stop_.wait_for(hold, std::chrono::duration<double>(tick), [&] { return stopping_; })) {
      hold.unlock();
      const auto orders = scaler_->step(hypertune::detail::steady_seconds(), sight());
      launch(orders.launch);
      end_workers(orders.end_workers);
      if (hypertune::detail::steady_seconds() >= next_look) {
        look_at_queue();
        next_look = hypertune::detail::steady_seconds() + std::min(10.0, 1.0 * ++looks_);
      }
      hold.lock();
    }
  }

  // Whoever waits learns what for. That Slurm does not answer changes nothing: what runs goes on.
  void look_at_queue() {
    cancel_left();
    if (!workers_.own_jobs) return;
    std::vector<std::string> jobs;
    std::map<std::string, std::string> names;
    bool was_up = false, is_up = false;
    for (const auto& account : executor_->inner().accounts()) {
      is_up = is_up || is_usable(account.state);
      was_up = was_up || account.seconds > 0;
      // One that was set aside may be connected to again by now, which nobody is told.
      if (account.state != HostState::connecting && account.state != HostState::backing_off) continue;
      for (const auto& worker : workers_.all)
        if (worker.name == account.name) {
          jobs.push_back(worker.job);
          names[worker.job] = worker.name;
        }
    }
    if (jobs.empty()) {
      told_.clear();
      looks_ = 0;
      return;
    }
    std::string trouble;
    const auto queue = ask_queue(jobs, asking_.get_token(), trouble);
    if (asking_.stop_requested()) return;
    if (!queue) {
      if (++silences_ == 3)
        notices_->say(fmt::format("Slurm does not answer ({}): what runs goes on, and it is asked again", trouble));
      return;
    }
    if (std::exchange(silences_, 0) >= 3) notices_->say("Slurm answers again");
    // Where workers have been, nodes may only be away: then all are waited for, and people are told why.
    const bool may_refuse = is_up || !was_up;
    std::vector<QueuedJob> waiting;
    for (const auto& [job, seen] : *queue) {
      const auto name = names.find(job);
      if (name == names.end()) continue;
      if (const auto never = why_never(seen); !never.empty() && may_refuse) {
        // Not by what one look shows: Slurm may be about to change it.
        if (std::exchange(doubted_[name->second], seen.reason) == seen.reason)
          pool_.refuse(name->second,
                       fmt::format("{}: it asks for {} (lower that, or name another partition, account or QOS)", never,
                                   asked_for()));
        continue;
      }
      doubted_.erase(name->second);
      pool_.explain(name->second, why_waiting(seen));
      if (seen.state == "PENDING") waiting.push_back(seen);
    }
    tell(waiting, is_up);
  }

  // What somebody may have to change.
  std::string asked_for() const {
    const auto& options = setup_.options;
    std::string text = fmt::format("{} cpu{}", options.cpus, options.cpus == 1 ? "" : "s");
    const auto add = [&](const char* name, const std::string& value) {
      if (!value.empty()) text += fmt::format(", {} {}", name, value);
    };
    add("gres", options.gres);
    if (options.memory > 0) add("memory", fmt::format("{} bytes", options.memory));
    if (options.time > 0) add("time", time_text(options.time));
    text += options.partition.empty() ? ", the default partition" : fmt::format(", partition '{}'", options.partition);
    add("account", options.account);
    add("qos", options.qos);
    if (!options.args.empty()) text += fmt::format(", {}", fmt::join(options.args, " "));
    return text;
  }

  // One line for all: again when something new keeps them, and once a minute while nothing runs.
  void tell(const std::vector<QueuedJob>& waiting, bool some_run) {
    constexpr double again = 60;
    if (waiting.empty()) return;
    std::map<std::string, int> words;
    bool news = false;
    for (const auto& job : waiting) {
      ++words[reason_word(job)];
      news = told_.insert(reason_word(job)).second || news;
    }
    const double now = hypertune::detail::steady_seconds();
    if (!news && (some_run || now - told_at_ < again)) return;
    told_at_ = now;
    if (news) looks_ = 0;
    const auto all = waiting.size();
    if (words.size() == 1) {
      notices_->say(fmt::format("{} worker{} {}", all, all == 1 ? "" : "s, each", why_waiting(waiting.front())));
      return;
    }
    std::string parts;
    for (const auto& [word, count] : words)
      parts +=
          fmt::format("{}{} {}", parts.empty() ? "" : ", ", count, word.empty() ? "for no reason that it says" : word);
    notices_->say(fmt::format("{} workers wait in Slurm's queue: {}", all, parts));
  }

  bool cancel_left() {
    const auto names = left_->names();
    if (names.empty()) return true;
    if (!cancel_jobs(names)) return false;
    left_->remove(names);
    return true;
  }

  void stop_following() {
    {
      const std::lock_guard hold(mutex_);
      stopping_ = true;
    }
    asking_.request_stop();
    stop_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void finish() noexcept {
    try {
      stop_following();
      executor_.reset();
      if (tracker_) tracker_->ended();
      if (!cancel_left())
        hypertune::detail::say(
            fmt::format("hypertune: Slurm does not answer, and these jobs may be left: end them with "
                        "scancel --name={}",
                        fmt::join(left_->names(), " --name=")));
    } catch (const std::exception& error) {
      hypertune::detail::say(fmt::format("hypertune: jobs of Slurm may be left: {}", error.what()));
    }
  }

  const SlurmSetup& setup_;
  Workload workload_;
  std::shared_ptr<LeftJobs> left_ = std::make_shared<LeftJobs>();
  std::shared_ptr<remote::Notices> notices_;
  Workers workers_;
  std::shared_ptr<remote::DemandTracker> tracker_;
  std::optional<WorkerScaler> scaler_;
  remote::HostPool pool_;
  std::optional<remote::TrackedExecutor<remote::RemoteExecutor>> executor_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::stop_source asking_;  // ends squeue
  // Of the thread.
  int silences_ = 0, looks_ = 0;
  std::map<std::string, std::string> doubted_;  // workers that cannot start, by what the last look showed
  std::set<std::string> told_;                  // what workers wait for, as people were told
  double told_at_ = 0;                          // when they were
  std::thread thread_;
};

}  // namespace detail

struct SlurmExecutor::Impl {
  SlurmSetup setup;
  std::unique_ptr<detail::SlurmRun> run;

  detail::SlurmRun& current() const {
    if (!run) fail(Errc::usage, "workers of Slurm are for experiments: a Tuner says what it needs of them");
    return *run;
  }
  bool works() const { return run && !run->idle(); }
};

SlurmExecutor::SlurmExecutor(SlurmSetup setup) : impl_(std::make_shared<Impl>()) {
  check_options(setup.options);
  setup.remote.validate();
  impl_->setup = std::move(setup);
}

void SlurmExecutor::prepare(const Workload& workload) {
  impl_->run.reset();
  impl_->run = std::make_unique<detail::SlurmRun>(impl_->setup, workload);
}
std::vector<Host> SlurmExecutor::hosts() const { return impl_->current().hosts(); }
Seconds SlurmExecutor::now() const { return run_clock(); }
void SlurmExecutor::start(ExecutorStart start) {
  if (auto& run = impl_->current(); !run.idle()) run.start(std::move(start));
}
void SlurmExecutor::perform(Command command) {
  if (auto& run = impl_->current(); !run.idle()) run.executor().perform(std::move(command));
}
void SlurmExecutor::wait(Seconds deadline) {
  if (auto& run = impl_->current(); !run.idle()) run.executor().wait(deadline);
}
void SlurmExecutor::notify() {
  if (impl_->works()) impl_->run->executor().notify();
}
void SlurmExecutor::shutdown() {
  if (impl_->works()) impl_->run->shutdown();
}
void SlurmExecutor::trial_ended(TrialId trial) {
  if (impl_->works()) impl_->run->tracker().trial_ended(trial);
}
void SlurmExecutor::teardown() { impl_->run.reset(); }
std::vector<remote::HostAccount> SlurmExecutor::accounts() const {
  if (!impl_->works()) return {};
  return impl_->run->executor().inner().accounts();
}

}  // namespace hypertune::inline v0::slurm
