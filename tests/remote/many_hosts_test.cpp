// Hundreds of hosts on one driver, whose agents are played.
#include "agents.hpp"
#include "played_hosts.hpp"
#include "shared_executor.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <utility>

using namespace hypertune;
using namespace hypertune::test;

namespace {

constexpr int many = 200;

struct Config {
  double x = 0;
};
auto space() { return hypertune::space<Config>(dim("x", &Config::x, uniform(0.0, 1.0))); }
Training played(Config config) { co_yield report("value", config.x); }  // of which agents that are played run nothing

remote::RemoteOptions patient() {
  remote::RemoteOptions options;
  options.timeouts = {.heartbeat = 60, .connect = 60, .first_delay = 0.05, .max_delay = 0.2, .stable = 60};
  return options;
}
Options sweep(const TemporaryDirectory& folder, AnyExecutor executor, int samples) {
  Options options;
  options.executor = std::move(executor);
  options.samples = samples;
  options.search = Random{};
  options.output = folder.path() / "run";
  options.display = Display::quiet;
  options.handle_signals = false;
  return options;
}

/// A run on a thread of its own, which has ended with the scope.
class Run {
 public:
  explicit Run(Options options)
      : tuner_(make_tuner(space(), played, std::move(options))), thread_([this] {
          try {
            results_ = tuner_.run();
          } catch (...) { error_ = std::current_exception(); }
          over_ = true;
        }) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() {
    if (!thread_.joinable()) return;
    tuner_.stop_now();
    thread_.join();
  }
  bool over() const { return over_; }
  Results results() {
    thread_.join();
    if (error_) std::rethrow_exception(error_);
    return results_;
  }

 private:
  Tuner tuner_;
  Results results_;
  std::exception_ptr error_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

/// Each trial has done its steps, once each as far as the record says, and ends with what they come to.
void check_trials(const Results& results, std::size_t samples, int steps) {
  CHECK(results.size() == samples);
  CHECK(results.count(TrialState::completed) == samples);
  std::size_t right = 0;
  for (const auto& trial : results.trials()) {
    const double* value = find_metric(trial.metrics, "value");
    right += trial.steps == steps && value != nullptr && *value == trial.params.get<double>("x") * steps ? 1 : 0;
  }
  CHECK(right == samples);
}

}  // namespace

TEST_CASE("a sweep on two hundred hosts uses them all, loses half of them at once, and ends with every trial") {
  const PlayedHosts played({.steps = 4, .cpus = 1});
  const TemporaryDirectory folder;
  const SharedExecutor<RemoteExecutor> executor(played.pool(many), patient());
  const auto remote = executor.get();
  Run run(sweep(folder, executor, 2 * many));
  const auto& counts = played.counts();
  REQUIRE(eventually([&] { return counts.launches == many || run.over(); }, 120));
  played.allow(2);
  REQUIRE(eventually([&] { return counts.reports == 2 * many || run.over(); }, 120));
  CHECK(counts.launches == many);  // each host has one and no more: all wait for leave to go on
  played.lose(0, many / 2);
  REQUIRE(eventually([&] { return counts.launches == many + many / 2 || run.over(); }, 120));
  played.allow(4);
  const auto results = run.results();
  check_trials(results, 2 * many, 4);
  CHECK(results.failures(FailureSource::infrastructure) == many / 2);
  CHECK(results.failures(FailureSource::user) == 0);
  CHECK(results.repeated_steps() == many);  // two of each trial that was lost
  const auto uses = results.hosts();
  CHECK(uses.size() == many);
  CHECK(std::all_of(uses.begin(), uses.end(), [](const HostUse& use) { return use.attempts >= 1; }));
  const auto accounts = remote->accounts();
  REQUIRE(accounts.size() == many);
  int losses = 0, incarnations = 0;
  for (const auto& account : accounts) {
    losses += account.losses;
    incarnations += account.incarnations;
    CHECK(account.seconds > 0);
  }
  CHECK(losses == many / 2);
  CHECK(incarnations == many + many / 2);
}

TEST_CASE("hosts that are put on the list one by one are all used, and those that are taken off it are left") {
  const PlayedHosts played({.steps = 2, .cpus = 1});
  const TemporaryDirectory folder;
  const auto hosts = played.pool(many).hosts();
  remote::HostPool pool({hosts.front()});
  const SharedExecutor<RemoteExecutor> executor(pool, patient());
  const auto remote = executor.get();
  Run run(sweep(folder, executor, 2 * many));
  const auto& counts = played.counts();
  REQUIRE(eventually([&] { return counts.launches == 1 || run.over(); }, 120));
  for (std::size_t i = 1; i < hosts.size(); ++i) pool.add(hosts[i]);
  REQUIRE(eventually([&] { return counts.launches == many || run.over(); }, 120));
  for (std::size_t i = 0; i < hosts.size() / 2; ++i) pool.remove(hosts[i].name);
  REQUIRE(eventually(
      [&] {
        const auto accounts = remote->accounts();
        return run.over() || std::count_if(accounts.begin(), accounts.end(), [](const auto& account) {
                               return account.state == remote::HostState::draining;
                             }) == many / 2;
      },
      120));
  played.allow(2);
  const auto results = run.results();
  check_trials(results, 2 * many, 2);
  CHECK(results.hosts().size() == many);
  const auto accounts = remote->accounts();
  REQUIRE(accounts.size() == many);
  for (std::size_t i = 0; i < accounts.size(); ++i)
    CHECK((accounts[i].state == remote::HostState::gone) == (i < hosts.size() / 2));
}
