// SlurmExecutor: one experiment on workers of Slurm.
#include "queue.hpp"
#include "worker_scaler.hpp"
#include "workers.hpp"

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/remote/demand.hpp>
#include <hypertune/remote/host_pool.hpp>
#include <hypertune/remote/notices.hpp>
#include <hypertune/slurm/executor.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
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
        notices_(std::make_shared<remote::Notices>([say = setup.say, quiet = workload.quiet](const std::string& line) {
          if (say)
            say(line);
          else if (!quiet)
            hypertune::detail::say("hypertune: " + line);
        })),
        workers_(make_workers(setup, workload.directory.filename().string(), most_workers(workload), left_)) {
    if (workers_.all.empty()) fail(Errc::usage, "the Slurm allocation has no node");
    if (workload_.trials == 0) return;  // nothing is left to do
    tracker_ = std::make_shared<remote::DemandTracker>(workload_.each, bounded(workload_.trials.value_or(0), most),
                                                       bounded(workload_.concurrency, 10'000), workload_.workers);
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
    sigset_t all_signals, before;  // signals are for the program's own threads
    sigfillset(&all_signals);
    ::pthread_sigmask(SIG_SETMASK, &all_signals, &before);
    thread_ = std::thread([this] { follow(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  void shutdown() {
    stop_following();
    executor_->shutdown();
  }

 private:
  static constexpr std::int64_t most = std::numeric_limits<int>::max() / 2;
  static int bounded(std::int64_t count, std::int64_t otherwise) {
    return static_cast<int>(count > 0 ? std::min(count, most) : otherwise);
  }
  // Never more workers than trials that can run at once.
  static int most_workers(const Workload& workload) {
    auto count = workload.trials && *workload.trials > 0 ? *workload.trials : most;
    if (workload.concurrency > 0) count = std::min(count, workload.concurrency);
    return static_cast<int>(std::min(most, count));
  }

  remote::RemoteOptions remote_options() const {
    auto options = setup_.remote;
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
      pool_.remove(workers_.all[static_cast<std::size_t>(worker)].name, "no trial needs it now: its job is ended");
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
      seen.up.push_back(state != states.end() &&
                        (state->second == HostState::ready || state->second == HostState::suspect));
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
    for (const auto& account : executor_->inner().accounts()) {
      // One that was set aside may be connected to again by now, which nobody is told.
      if (account.state != HostState::connecting && account.state != HostState::backing_off) continue;
      for (const auto& worker : workers_.all)
        if (worker.name == account.name) {
          jobs.push_back(worker.job);
          names[worker.job] = worker.name;
        }
    }
    if (jobs.empty()) {
      said_.clear();
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
    std::map<std::string, int> reasons;
    for (const auto& [job, seen] : *queue) {
      const auto name = names.find(job);
      if (name == names.end()) continue;
      const auto why = why_waiting(seen);
      pool_.explain(name->second, why);
      if (seen.state == "PENDING") ++reasons[why];
    }
    tell(reasons);
  }

  // One line for all, and another one when they wait for something else.
  void tell(const std::map<std::string, int>& reasons) {
    if (reasons.empty()) return;
    const auto most_common = std::max_element(reasons.begin(), reasons.end(),
                                              [](const auto& a, const auto& b) { return a.second < b.second; });
    if (std::exchange(said_, most_common->first) == most_common->first) return;
    looks_ = 0;
    notices_->say(fmt::format("{} worker{} {}", most_common->second, most_common->second == 1 ? "" : "s, each",
                              most_common->first));
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
  std::string said_;  // what workers wait for, as people were told last
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
