#include "cluster_trials.hpp"

#include "cluster_support.hpp"
#include "cost_file.hpp"
#include "remote_trials.hpp"

#include <hypertune/cluster/demand_tracker.hpp>
#include <hypertune/cluster/scaler.hpp>
#include <hypertune/ssh/remote.hpp>
#include <hypertune/tune/options.hpp>

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

namespace hypertune::command {

namespace {

namespace hc = hypertune::cluster;

hc::ClusterConfig read_config(const Sweep& sweep) {
  ClusterArguments arguments;
  arguments.file = found_from(sweep, sweep.executor.ssh->cluster).string();
  return read_cluster(arguments);
}

// Before anything is locked or paid for.
void require_possible(const hc::ClusterConfig& config, const Resources& needs) {
  if (const auto why = hc::Autoscaler(hc::autoscaler_options(config)).why_never(needs))
    fail(Errc::resources, "{}: {}", config.file.string(), *why);
}

bool fits(const ssh::HostSpec& host, const Resources& needs) {
  constexpr double slack = 1e-9;
  if (host.cpus > 0 && needs.cpus > host.cpus + slack) return false;
  if (host.gpus >= 0 && needs.gpus > host.gpus + slack) return false;
  if (host.memory > 0 && needs.memory > host.memory) return false;
  return std::all_of(needs.custom.begin(), needs.custom.end(), [&](const auto& need) {
    const auto has = host.custom.find(need.first);
    return need.second <= 0 || (has != host.custom.end() && need.second <= has->second + slack);
  });
}

struct Follower {
  std::shared_ptr<hc::DemandTracker> tracker;
  void on_trial_end(const record::TrialEnded& ended) { tracker->settled(ended.trial); }
};

}  // namespace

struct ClusterTrials::Impl {
  hc::ClusterConfig config;
  Resources needs;
  std::filesystem::path directory;
  std::string file;
  bool quiet = false;
  std::shared_ptr<hc::ExecutorNotices> notices;
  std::shared_ptr<hc::DemandTracker> tracker;
  std::atomic<bool> ending{false}, experimenting{false};
  std::atomic<int> heard{0};  // interruptions that have been seen to
  std::unique_ptr<hc::Cluster> cluster;
  std::optional<CostFile> cost;
  std::chrono::steady_clock::time_point written{};
  std::mutex mutex;
  std::condition_variable news;
  std::uint64_t lines = 0;
  bool finished = false;
  std::unique_ptr<hc::ClusterScaler> scaler;  // last: its threads use the others

  void say(const std::string& line) {
    notices->say(fmt::format("cluster '{}': {}", config.name, line));
    {
      const std::lock_guard lock(mutex);
      ++lines;
    }
    news.notify_all();
  }

  hc::CostReport so_far() const { return cluster->journal().ledger().cost(hc::wall_now(), config.currency, true); }
  void write_cost(bool ended) {
    std::error_code ignored;
    if (cost && std::filesystem::is_directory(directory, ignored)) cost->update(so_far(), ended);
  }

  // On the scaler's thread, at every tick.
  hc::HostDemand demand() {
    // A terminal that is closed ends the experiment as Ctrl-C does: the handler of that is the experiment's.
    if (experimenting && interruptions() > heard) {
      heard = interruptions();
      ::kill(::getpid(), SIGTERM);
    }
    if (const auto now = std::chrono::steady_clock::now(); experimenting && now - written > std::chrono::seconds(5)) {
      written = now;
      write_cost(false);
    }
    return tracker->demand();
  }

  std::filesystem::path ssh_config() const { return scaler->ssh_config(); }
  ssh::HostList hosts() const {
    auto list = scaler->hosts();
    std::erase_if(list, [&](const ssh::HostSpec& host) { return !fits(host, needs); });  // a head that is too small
    return list;
  }

  void finish() {
    if (std::exchange(finished, true)) return;
    experimenting = false;
    tracker->ended();
    ending = true;  // what is being set up is left
    scaler->stop();
    heard = interruptions();
    ending = false;
    hc::DownOptions down;
    const auto machines = cluster->reconcile();
    const bool brought_up = std::any_of(machines.begin(), machines.end(), [](const auto& machine) {
      return machine.head && machine.state != hc::MachineState::terminated;
    });
    down.workers_only = down.keep_min_workers = brought_up;
    down.why = "the run has ended";
    const int ended = cluster->down(down);
    if (!quiet && ended > 0)
      fmt::print(stderr, "cluster '{}': {} machine{} ended\n", config.name, ended, ended == 1 ? "" : "s");
    write_cost(true);
  }
};

ClusterTrials::ClusterTrials(const Sweep& sweep, std::int64_t left, std::filesystem::path directory)
    : impl_(std::make_shared<Impl>()) {
  auto& self = *impl_;
  self.config = read_config(sweep);
  self.file = self.config.file.string();
  self.needs = sweep.options.resources;
  require_possible(self.config, self.needs);
  self.directory = std::move(directory);
  self.quiet = sweep.options.display == Display::quiet;
  self.notices = std::make_shared<hc::ExecutorNotices>([quiet = self.quiet](const std::string& line) {
    if (!quiet) fmt::print(stderr, "{}\n", line);
  });
  // Without a number of trials there is always one more.
  const auto most = static_cast<std::int64_t>(std::numeric_limits<int>::max() / 2);
  self.tracker = std::make_shared<hc::DemandTracker>(
      self.needs, static_cast<int>(left > 0 ? std::min(left, most) : most),
      sweep.options.concurrency > 0 ? static_cast<int>(std::min<std::int64_t>(sweep.options.concurrency, most))
                                    : 10'000);
  interruptions();
  self.cluster = std::make_unique<hc::Cluster>(
      self.config, hc::ClusterHooks{.say = [&self](const std::string& line) { self.say(line); },
                                    .cancelled = [&self] { return self.ending || interruptions() > self.heard; }});
  self.cost.emplace(self.directory, self.config.name, self.so_far());
  self.scaler = std::make_unique<hc::ClusterScaler>(
      *self.cluster, [&self] { return self.demand(); },
      hc::ScalerOptions{.log = [&self](const std::string& line) { self.say(line); }});
}

ClusterTrials::~ClusterTrials() {
  if (!impl_->scaler) return;
  try {
    impl_->finish();
  } catch (const std::exception& error) {
    fmt::print(stderr, "hypertune: machines may be left ({}): run `hypertune down {}`\n", error.what(), impl_->file);
  }
}

void ClusterTrials::finish() { impl_->finish(); }

bool ClusterTrials::await_machine() {
  auto& self = *impl_;
  std::uint64_t seen = 0;
  for (;;) {
    if (interruptions() > self.heard) return false;
    if (!self.hosts().empty()) break;
    self.scaler->require_possible(self.needs);  // what machines have is known when the first is up
    if (const auto why = self.scaler->hopeless())
      fail(Errc::io, "cluster '{}': no machine comes up: {}", self.config.name, *why);
    std::unique_lock lock(self.mutex);  // a signal handler cannot wake it
    self.news.wait_for(lock, std::chrono::milliseconds(100), [&] { return self.lines != seen; });
    seen = self.lines;
  }
  self.experimenting = true;
  return true;
}

AnyExecutor ClusterTrials::executor(const Sweep& sweep, const std::string& file, const std::vector<std::string>& set) {
  auto setup = remote_setup_of(sweep, file, set);
  setup.hosts = ssh::HostSource::callback([self = impl_] { return self->hosts(); }, 1);
  setup.ssh.config = impl_->ssh_config();
  return hc::TrackedExecutor<RemoteExecutor>(remote(std::move(setup)), impl_->tracker, impl_->notices);
}

AnyCallback ClusterTrials::follower() const { return Follower{impl_->tracker}; }

}  // namespace hypertune::command
