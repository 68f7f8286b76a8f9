// Hosts that run one attempt each (RemoteOptions::reuse): none runs two, whatever becomes of it, and nothing is lost.
#include "conforming_hosts.hpp"
#include "experiments.hpp"
#include "support/disturbed_executor.hpp"
#include "support/scripted_tuner.hpp"

#include <hypertune/random.hpp>
#include <hypertune/remote/elastic.hpp>

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

using namespace hypertune;
using namespace hypertune::test;

namespace {

remote::RemoteOptions once(const std::string& program) {
  remote::RemoteOptions options;
  options.program = program;
  options.timeouts = {.heartbeat = 2.5, .connect = 20, .first_delay = 0.02, .max_delay = 0.2, .stable = 60};
  options.reuse = false;
  return options;
}

/// Workers that are made anew for each attempt, with room for several trials at once.
struct NewWorkers {
  Hosts hosts{4};
  std::atomic<int> dials = 0, released = 0;

  remote::ElasticExecutor executor(int count, bool direct = false) {
    return remote::ElasticExecutor("elastic", [this, count, direct](const Workload&) {
      remote::ElasticPlan plan{.min = 0, .idle_timeout = 0.3, .remote = once("learner")};
      plan.remote.transfer.direct = direct;
      for (int i = 1; i <= count; ++i) {
        const auto name = "worker-" + std::to_string(i);
        plan.workers.push_back(
            {.name = name,
             .total = {.cpus = 4},
             .dialer = WatchedDialer{remote::CommandDialer(hosts.command(name)), [this] { ++dials; }}});
      }
      return remote::ElasticExperiment{
          .plan = std::move(plan), .hooks = {.ended = [this](const std::string&) { ++released; }}, .notices = nullptr};
    });
  }
};

/// Until a host is lost one attempt starts on it at most. Returns how many attempts there were. In an ordered run a
/// start is decided, and recorded, before the host is there: what counts is its loss.
int check_used_once(const std::filesystem::path& directory) {
  std::map<std::string, int> attempts;
  int all = 0;
  read_journal(directory, [&](const Record& record) {
    if (const auto* e = std::get_if<record::HostLost>(&record.what)) attempts[e->host] = 0;
    if (const auto* e = std::get_if<record::TrialStarted>(&record.what)) {
      CHECK(++attempts[e->host] == 1);
      ++all;
    }
  });
  return all;
}

/// Hosts of the same names, each on a folder of its own each time: as with pods, nothing of the one before is there.
class NewHosts {
 public:
  explicit NewHosts(int workers) : hosts_(workers) {}
  remote::HostPool pool(int count) {
    remote::HostPool pool;
    for (int i = 0; i < count; ++i)
      pool.add(
          {.name = Hosts::name(i), .dialer = remote::CommandDialer([this, i] { return hosts_.command(next(i)); })});
    return pool;
  }
  /// The latest of the name.
  void kill(int i) {
    const std::lock_guard guard(mutex_);
    hosts_.kill(folder_of(i, made_[i]));
  }

 private:
  std::string next(int i) {
    const std::lock_guard guard(mutex_);
    return folder_of(i, ++made_[i]);
  }
  static std::string folder_of(int i, int made) { return Hosts::name(i) + std::to_string(made); }

  Hosts hosts_;
  std::mutex mutex_;
  std::map<int, int> made_;
};

/// Puts hosts that have been used on the list again, as others of the same name.
auto refilled(remote::HostPool pool, remote::RemoteOptions options) {
  const auto refill = [pool, hosts = pool.hosts()](const Event&) mutable {
    for (const auto& name : pool.take_retired())
      for (const auto& host : hosts)
        if (host.name == name) pool.add(host);
  };
  return ObservedExecutor<RemoteExecutor>(RemoteExecutor(std::move(pool), std::move(options)), refill);
}

}  // namespace

TEST_CASE("a worker for each trial: as many as there are trials, however much room they have, and none is used twice") {
  TemporaryDirectory folder;
  NewWorkers workers;
  auto options = experiment(folder.path() / "run", workers.executor(3));
  options.ordered = false;
  options.samples = 8;
  options.stop = steps(4);
  const auto results = run(std::move(options));
  INFO(story(results));
  CHECK(results.size() == 8);
  for (const auto& trial : results.trials()) CHECK(trial.steps == 4);
  CHECK(check_used_once(results.directory()) == 8);
  CHECK(workers.dials == 8);
  CHECK(workers.released >= 5);  // in the place of each but the last three another one came
  for (const auto source : {FailureSource::user, FailureSource::infrastructure, FailureSource::preemption})
    CHECK(results.failures(source) == 0);
  check_reports(results);
  CHECK(eventually([&] { return workers.hosts.all().empty(); }));
}

TEST_CASE("a worker for each attempt: an ordered run with trials that pause decides as one on threads does") {
  TemporaryDirectory folder;
  const auto with = [&](const std::string& name, AnyExecutor executor) {
    auto options = asha(folder.path() / name, std::move(executor));
    options.samples = 12;
    options.schedule = Asha{.grace_period = 3, .max_steps = 27, .reduction_factor = 3};
    return options;
  };
  const auto undisturbed = run(with("threads", threads(4)));
  NewWorkers workers;
  const auto results = run(with("once", workers.executor(4)));
  INFO(story(results));
  CHECK(fingerprint(results) == fingerprint(undisturbed));
  CHECK(check_used_once(results.directory()) >= 12);
  CHECK(results.failures(FailureSource::infrastructure) == 0);
  check_reports(results);
}

TEST_CASE("a worker for each attempt: what one has saved is there for others when it is gone") {
  TemporaryDirectory folder;
  const auto undisturbed = run(pbt(folder.path() / "threads", threads(4)));
  NewWorkers workers;
  const auto results = run(pbt(folder.path() / "once", workers.executor(4, true)));
  INFO(story(results));
  CHECK(fingerprint(results) == fingerprint(undisturbed));
  CHECK(check_used_once(results.directory()) > 4);  // each exploit is an attempt of its own
  check_reports(results);
}

TEST_CASE("a worker for each attempt: where one is killed or taken away, the trial goes on on another one") {
  TemporaryDirectory folder;
  const int signal = GENERATE(SIGKILL, SIGTERM);
  INFO("signal " << signal);
  NewWorkers workers;
  auto options = experiment(folder.path() / "run", workers.executor(2));
  options.ordered = false;
  options.samples = 2;
  options.stop = steps(60);
  std::atomic<bool> over = false;
  bool struck = false;
  std::jthread disturber([&] {
    struck = eventually([&] { return over || reports(folder.path() / "run") >= 20; }) && !over &&
             workers.hosts.kill("worker-1", signal);
  });
  const auto results = run(std::move(options));
  over = true;
  disturber.join();
  INFO(story(results));
  REQUIRE(struck);
  CHECK(results.size() == 2);
  for (const auto& trial : results.trials()) CHECK(trial.steps == 60);
  CHECK(check_used_once(results.directory()) == 3);
  CHECK(workers.dials == 3);
  CHECK(results.failures(signal == SIGKILL ? FailureSource::infrastructure : FailureSource::preemption) == 1);
  CHECK(results.failures(FailureSource::user) == 0);
  check_reports(results);
}

TEST_CASE("a worker for each rank of a trial of several workers") {
  TemporaryDirectory folder;
  NewWorkers workers;
  auto options = experiment(folder.path() / "run", workers.executor(6));
  options.ordered = false;
  options.samples = 3;
  options.workers = {.min = 3};
  options.stop = steps(4);
  const auto results = run(std::move(options));
  INFO(story(results));
  CHECK(results.size() == 3);
  for (const auto& trial : results.trials()) CHECK(trial.steps == 4);
  CHECK(workers.dials == 9);
  CHECK(results.failures(FailureSource::infrastructure) == 0);
  check_reports(results);
}

TEST_CASE("a host that is used once and put on the list again keeps the laws of executors", "[thorough]") {
  NewHosts hosts(4);
  const auto make = [&](Form form) { return refilled(hosts.pool(4), once(program_of(form))); };
  const auto [form, answers] = conformance::combination(combinations());
  const ExecutorTraits traits{.many = 60, .shutdowns = 2};
  executor_trial_laws(make, traits, form, answers);
  executor_crowd_laws(make, traits, form, answers);
}

TEST_CASE("groups whose workers have a host each, used once, keep the laws, though hosts are killed", "[thorough]") {
  NewHosts hosts(3);
  constexpr int count = 9;
  const auto kill_a_host = [&](int number) {
    Rng rng = derived_rng(9, {static_cast<std::uint64_t>(number)});
    hosts.kill(static_cast<int>(uniform01(rng) * count));
  };
  const auto make = [&](Form form) { return refilled(hosts.pool(count), once(program_of(form))); };
  executor_gang_conformance(
      make, [&](Form form) { return disturbed(make(form), 15, kill_a_host); }, 30, combinations());
}
