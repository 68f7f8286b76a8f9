// Hosts are killed, silenced and added at random while an experiment runs: it finds what it would have found in peace.
#include "agents.hpp"
#include "experiments.hpp"

#include <hypertune/hypertune.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>

namespace ht = hypertune;
using namespace hypertune::test;

namespace {

ht::remote::RemoteOptions quick() {
  ht::remote::RemoteOptions options;
  options.program = "learner";
  options.timeouts = {.heartbeat = 1.5, .connect = 20, .first_delay = 0.1, .max_delay = 0.5, .stable = 60};
  options.gather = 5;
  return options;
}

/// Does something to some host after every dozen reports: an experiment is disturbed as often however fast it goes.
class Chaos {
 public:
  Chaos(const Hosts& hosts, ht::remote::HostPool pool, unsigned seed)
      : hosts_(hosts), pool_(std::move(pool)), rng_(seed), thread_([this] { run(); }) {}
  ~Chaos() {
    {
      const std::lock_guard guard(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void report() {
    {
      const std::lock_guard guard(mutex_);
      due_ += ++reports_ % 12 == 0 ? 1 : 0;
    }
    changed_.notify_all();
  }
  int done() const { return done_; }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return over_ || due_ > 0; });
      if (over_) return;
      --due_;
      disturb();
    }
  }
  void disturb() {
    // Host d stays, and holds all trials if need be.
    const std::string victim = Hosts::name(static_cast<int>(rng_() % 3));
    switch (rng_() % 4) {
      case 0: done_ += hosts_.kill(victim, SIGKILL) ? 1 : 0; break;
      case 1: done_ += hosts_.kill(victim, SIGSTOP) ? 1 : 0; break;
      case 2: done_ += hosts_.kill(victim, SIGTERM) ? 1 : 0; break;
      default:
        if (removed_.erase(victim) > 0) {
          pool_.add(hosts_.host(victim));
        } else {
          pool_.remove(victim);
          removed_.insert(victim);
        }
        ++done_;
    }
  }
  const Hosts& hosts_;
  ht::remote::HostPool pool_;
  std::mt19937 rng_;
  std::set<std::string> removed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int reports_ = 0, due_ = 0;
  bool over_ = false;
  std::atomic<int> done_{0};
  std::thread thread_;
};

struct Disturb {
  Chaos* chaos;
  void on_trial_report(const ht::record::TrialReported&, ht::Seconds) const { chaos->report(); }
};

using Make = ht::Options (*)(const std::filesystem::path&, ht::AnyExecutor);

/// `shared`: the checkpoints are in a folder that all hosts have.
void check_disturbed(Make make, bool shared) {
  const Hosts hosts(4);
  TemporaryDirectory directory;
  const auto peace = run(make(directory.path() / "peace", ht::RemoteExecutor(hosts.pool(4), quick())));
  const auto local = run(make(directory.path() / "local", ht::threads(4)));
  CHECK(fingerprint(peace) == fingerprint(local));

  const auto pool = hosts.pool(4);
  std::optional<Chaos> chaos(std::in_place, hosts, pool, 7 + Catch::rngSeed());
  auto remote = quick();
  remote.transfer = {.inline_limit = 0, .direct = make == &pbt};  // by content, though they are small
  if (shared) remote.transfer.shared.emplace();
  auto options = make(directory.path() / "war", ht::RemoteExecutor(pool, std::move(remote)));
  options.callbacks.emplace_back(Disturb{&*chaos});
  const auto war = run(std::move(options));
  const int disturbed = chaos->done();
  chaos.reset();
  CHECK(disturbed > 3);
  INFO(story(war));
  CHECK(fingerprint(war) == fingerprint(peace));
  check_reports(war);
  CHECK(peace.repeated_steps() == 0);
  if (war.failures(ht::FailureSource::infrastructure) > 4) CHECK(war.repeated_steps() > 0);
  std::int64_t lost = 0;
  for (const auto& host : war.hosts()) {
    lost += host.lost;
    CHECK(host.busy <= host.present * 4 + 1);  // it has four slots
  }
  CHECK(lost > 0);
  CHECK(eventually([&] { return hosts.all().empty(); }));
}

}  // namespace

TEST_CASE("an ASHA sweep and a population end as they would undisturbed while hosts are killed, cut off and added") {
  check_disturbed(GENERATE(&asha, &pbt), false);
}

TEST_CASE("an ASHA sweep and a population whose checkpoints are in a shared folder end so, too") {
  check_disturbed(GENERATE(&asha, &pbt), true);
}

TEST_CASE("a driver that was killed goes on over the same hosts, and counts nothing twice") {
  const Hosts hosts(4);
  TemporaryDirectory directory;
  const auto output = directory.path() / "run";
  const pid_t driver = ::fork();
  REQUIRE(driver >= 0);
  if (driver == 0) {
    run(asha(output, ht::RemoteExecutor(hosts.pool(2), quick())));
    ::_exit(0);
  }
  const auto reports = [&]() -> std::int64_t {
    try {
      return ht::Results::read(output).experiment().reports;
    } catch (const ht::Error&) { return 0; }  // it has just begun
  };
  CHECK(eventually([&] { return reports() >= 40; }, 60));
  REQUIRE(::kill(driver, SIGKILL) == 0);
  REQUIRE(::waitpid(driver, nullptr, 0) == driver);
  auto options = asha(output, ht::RemoteExecutor(hosts.pool(2), quick()));
  options.resume = true;
  const auto results = run(std::move(options));
  CHECK(results.size() == 40);
  CHECK(results.experiment().starts == 2);
  CHECK(results.count(ht::TrialState::completed) + results.count(ht::TrialState::stopped) == 40);
  CHECK(results.failures(ht::FailureSource::user) + results.failures(ht::FailureSource::infrastructure) == 0);
  check_reports(results);
  CHECK(eventually([&] { return hosts.all().empty(); }));
}
