// Groups over real OpenSSH servers, each with a network and processes of its own: workers and hosts are killed, hosts
// are cut off and come back, and the training is the same to the bit.
#include "elastic_training.hpp"
#include "ssh/support/test_hosts.hpp"
#include "support/eventually.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"
#include "training_results.hpp"

#include <hypertune/record/detail/journal_reader.hpp>
#include <hypertune/ssh/executor.hpp>

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ht = hypertune;
using namespace hypertune::test;

namespace {

constexpr int hosts_count = 3;
constexpr const char* test_network = "10.88.0.0/13";  // of TestHosts

ht::Options experiment(const TestHosts& hosts, const std::filesystem::path& output, const std::string& program) {
  ht::SshSetup setup;
  std::vector<std::string> names;
  for (int i = 1; i <= hosts_count; ++i) names.push_back(TestHosts::name(i));
  setup.hosts = std::move(names);
  setup.ssh = hosts.options();
  setup.ssh.connect_timeout = 2;
  setup.program = HYPERTUNE_TEST_TRAINING_AGENT;
  setup.arguments = {"agents", "2"};  // two workers for each host
  setup.remote.program = program;
  setup.remote.timeouts = {.heartbeat = 1.5, .connect = 20, .first_delay = 0.1, .max_delay = 0.5, .stable = 60};
  ht::Options options{.metric = "sum", .samples = 1, .executor = ht::over_ssh(std::move(setup)), .output = output};
  options.group.network = test_network;
  options.display = ht::Display::quiet;
  options.checkpoint.every = 1;
  options.max_retries = 3;
  return options;
}

ht::Results run(ht::Options options, ht::Training (*training)(const ht::Params&, ht::Context&, Fate) = train_in_parts) {
  return ht::tune(
      ht::space(ht::dim("x", ht::uniform(0.0, 1.0))),
      [training](const ht::Params& params, ht::Context& context) {
        return training(params, context, Fate(KilledAtRandom{}));
      },
      std::move(options));
}

Ended undisturbed() {
  const TemporaryDirectory directory;
  ht::Options options{.metric = "sum", .samples = 1, .executor = ht::threads(1), .output = directory.path() / "run"};
  options.display = ht::Display::quiet;
  return ended_of(run(std::move(options)));
}

/// Does things beside an experiment, one after the other, each after the report of a step.
class AtReports {
 public:
  explicit AtReports(std::map<int, std::function<void()>> deeds)
      : deeds_(std::move(deeds)), thread_([this] { run(); }) {}
  ~AtReports() { stop(); }
  void stop() {
    {
      const std::lock_guard guard(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  void reported(int step) {
    const std::lock_guard guard(mutex_);
    if (deeds_.contains(step)) due_.push_back(step);
    changed_.notify_all();
  }
  int done() const { return done_; }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return over_ || !due_.empty(); });
      if (due_.empty()) return;
      const auto deed = deeds_.at(due_.front());
      due_.pop_front();
      lock.unlock();
      deed();
      lock.lock();
      ++done_;
    }
  }
  std::map<int, std::function<void()>> deeds_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<int> due_;
  bool over_ = false;
  int done_ = 0;
  std::thread thread_;
};

struct TellReports {
  AtReports* to;
  void on_trial_report(const ht::record::TrialReported& report, ht::Seconds) const { to->reported(report.step); }
};

}  // namespace

TEST_CASE("a group over hosts trains as one worker does, whichever of its workers are killed") {
  const TemporaryDirectory directory, disk;
  const auto hosts = test_hosts(hosts_count, {"--share", disk.path().string()});
  if (!hosts) return;
  const auto alone = undisturbed();
  for (const auto& workers : {ht::Workers{.min = 4}, ht::Workers{.min = 2, .max = 5, .strategy = ht::Strategy::spread}})
    for (const unsigned seed : {0U, 1U}) {
      INFO(workers.min << " to " << workers.max << " workers, seed " << seed);
      const auto name = fmt::format("{}-{}", workers.max, seed);
      std::filesystem::create_directory(disk.path() / name);
      auto options =
          experiment(*hosts, directory.path() / name, fmt::format("0 {} /run/share/{} {} 0.25", seed, name, SIGKILL));
      options.workers = workers;
      check_like(ended_of(run(std::move(options))), alone);
      CHECK((seed == 0) == std::filesystem::is_empty(disk.path() / name));
    }
}

TEST_CASE("workers on hosts that are stopped are ended by force, and replaced") {
  const TemporaryDirectory directory, disk;
  const auto hosts = test_hosts(hosts_count, {"--share", disk.path().string()});
  if (!hosts) return;
  auto options = experiment(*hosts, directory.path() / "run", fmt::format("0 1 /run/share {} 0.05", SIGSTOP));
  options.workers = {.min = 4};
  check_like(ended_of(run(std::move(options))), undisturbed());
  CHECK_FALSE(std::filesystem::is_empty(disk.path()));
}

TEST_CASE("hosts of a group are killed, come back, are cut off, and healed") {
  const TemporaryDirectory directory;
  const auto hosts = test_hosts(hosts_count);
  if (!hosts) return;
  const auto alone = undisturbed();
  const auto workers = GENERATE(ht::Workers{.min = 4}, ht::Workers{.min = 2, .max = 6});
  INFO(workers.min << " to " << workers.max << " workers");
  auto options = experiment(*hosts, directory.path() / "run", "30");
  options.workers = workers;
  AtReports deeds({{0, [&] { hosts->kill(1); }},
                   {1, [&] { hosts->up(hosts_count); }},
                   {3, [&] { hosts->cut(2); }},
                   {4, [&] { hosts->heal(2); }},
                   {5, [&] { hosts->kill(3); }}});
  options.callbacks.emplace_back(TellReports{&deeds});
  const auto results = run(std::move(options));
  deeds.stop();
  CHECK(deeds.done() == 5);
  check_like(ended_of(results), alone);
  hosts->up(hosts_count);
  for (int i = 1; i <= hosts_count; ++i) CHECK(eventually([&] { return hosts->processes(i, "training_agent") == 0; }));
}

// A figure, not a verdict: from the first trial's start to the last one's first report, hosts being connected already.
TEST_CASE("a group of four starts about as fast as four trials of one worker") {
  const TemporaryDirectory directory;
  const auto hosts = test_hosts(hosts_count);
  if (!hosts) return;
  const auto seconds_to_first_reports = [&](const std::string& name, int trials, int workers) {
    auto options = experiment(*hosts, directory.path() / name, "0");
    options.samples = trials;
    options.workers = {workers};
    const auto results = run(std::move(options));
    CHECK(static_cast<int>(results.count(ht::TrialState::completed)) == trials);
    double first = 0, last = 0;
    ht::read_journal(results.directory(), [&](const ht::Record& record) {
      if (std::holds_alternative<ht::record::TrialStarted>(record.what) && first == 0) first = record.time;
      if (const auto* report = std::get_if<ht::record::TrialReported>(&record.what))
        if (report->step == 0) last = record.time;
    });
    return last - first;
  };
  std::vector<double> groups, singles;
  for (int i = 0; i < 5; ++i) {
    groups.push_back(seconds_to_first_reports(fmt::format("group-{}", i), 1, 4));
    singles.push_back(seconds_to_first_reports(fmt::format("singles-{}", i), 4, 1));
  }
  std::sort(groups.begin(), groups.end());
  std::sort(singles.begin(), singles.end());
  std::printf("to the first report over ssh: a group of 4 after %.3f s, four trials after %.3f s (medians of 5)\n",
              groups[2], singles[2]);
}
