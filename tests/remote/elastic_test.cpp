// Workers that come and go with the queue, whatever they are: here child processes.
#include "agents.hpp"
#include "experiments.hpp"
#include "support/standard_error.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/remote/elastic.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;

namespace {

remote::ElasticPlan plan_of(const Hosts& hosts, int workers) {
  remote::ElasticPlan plan{
      .min = 0, .idle_timeout = 0.3, .remote = {.timeouts = {.first_delay = 0.05}, .program = "learner"}};
  for (int i = 1; i <= workers; ++i) {
    const auto name = "worker-" + std::to_string(i);
    plan.workers.push_back({.name = name, .total = {.cpus = 1}, .dialer = remote::CommandDialer(hosts.command(name))});
  }
  return plan;
}

Options unordered(const std::filesystem::path& output, AnyExecutor executor, int samples, int steps) {
  auto options = experiment(output, std::move(executor));
  options.ordered = false;
  options.concurrency = 0;
  options.samples = samples;
  options.stop = hypertune::steps(steps);
  return options;
}

/// Waits for its place until nobody wants it any more.
struct WithoutPlace {
  remote::AgentStream dial(const std::stop_token& stop) const {
    std::mutex mutex;
    std::condition_variable_any asked;
    std::unique_lock lock(mutex);
    asked.wait_for(lock, stop, std::chrono::seconds(120), [] { return false; });
    throw remote::DialError(remote::FailureClass::transient, "it is not needed any more");
  }
  remote::FailureClass classify(const std::string&) const { return remote::FailureClass::transient; }
};
/// Cannot serve trials, whatever is tried.
struct WithoutLibraries {
  remote::AgentStream dial(const std::stop_token&) const {
    throw remote::DialError(remote::FailureClass::permanent, "its image lacks libraries");
  }
  remote::FailureClass classify(const std::string&) const { return remote::FailureClass::permanent; }
};

}  // namespace

TEST_CASE("where all workers that have a place are refused, the run does not wait for those that have none") {
  const bool comes = GENERATE(false, true);
  TemporaryDirectory folder;
  const Hosts hosts(1);
  std::atomic<int> looks{0};
  std::atomic<bool> place{false};
  remote::ElasticExecutor executor("elastic", [&](const Workload&) {
    auto plan = plan_of(hosts, 3);
    plan.min = 3;
    plan.remote.timeouts.connect = 9e8;
    plan.remote.timeouts.max_delay = 0.1;
    plan.remote.dials = 3;
    if (comes)  // who waits alone is waited for
      plan.workers[1].dialer =
          WatchedDialer{plan.workers[1].dialer, [&] { eventually([&] { return place.load(); }, 60); }};
    else
      plan.workers[1].dialer = WithoutLibraries{};
    for (const std::size_t other : {0U, 2U}) plan.workers[other].dialer = WithoutPlace{};
    return remote::ElasticExperiment{.plan = std::move(plan),
                                     .hooks = {.poll =
                                                   [&](remote::ElasticWorkers& workers) {
                                                     std::vector<std::string> waiting{"worker-1", "worker-3"};
                                                     if (comes && !place) waiting.push_back("worker-2");
                                                     for (const auto& name : waiting)
                                                       workers.explain(name, "waits for a node");
                                                     workers.set_without_room(waiting);
                                                     place = ++looks >= 10;
                                                     return 0.05;
                                                   }},
                                     .notices = nullptr};
  });
  auto options = unordered(folder.path() / "run", executor, 3, 2);
  std::string said;
  try {
    const auto results = run(options);
    CHECK(comes);
    CHECK(results.size() == 3);
    for (const auto& trial : results.trials()) CHECK(trial.steps == 2);
  } catch (const Error& error) { said = error.what(); }
  if (comes)
    CHECK(said.empty());
  else
    CHECK_THAT(said, ContainsSubstring("no worker can be used, and that does not pass by itself: worker-2: its image "
                                       "lacks libraries (once"));
}

TEST_CASE("what happens to all workers alike is said once, and the end of the run names it once") {
  struct WithoutImage {
    std::string worker;
    std::shared_ptr<std::atomic<int>> pods = std::make_shared<std::atomic<int>>(0);
    remote::AgentStream dial(const std::stop_token&) const {
      throw remote::DialError(remote::FailureClass::permanent,
                              "its pod digits-" + worker + "-" + std::to_string(++*pods) + " cannot start (no image)");
    }
    remote::FailureClass classify(const std::string&) const { return remote::FailureClass::permanent; }
  };
  TemporaryDirectory folder;
  const Hosts hosts(1);
  remote::ElasticExecutor executor("elastic", [&](const Workload&) {
    auto plan = plan_of(hosts, 3);
    plan.min = 3;
    plan.remote.timeouts.max_delay = 0.1;
    for (auto& worker : plan.workers) worker.dialer = WithoutImage{worker.name};
    return remote::ElasticExperiment{.plan = std::move(plan), .hooks = {}, .notices = nullptr};
  });
  auto options = unordered(folder.path() / "run", executor, 3, 2);
  options.display = Display::plain;
  std::string error;
  const auto lines = said([&] {
    try {
      run(options);
    } catch (const Error& e) { error = e.what(); }
  });
  const auto times = [](const std::string& text, const std::string& part) {
    int count = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
  };
  INFO(lines);
  CHECK(times(lines, "is not used:") == 1);
  CHECK(times(lines, "set aside") == 0);
  CHECK_THAT(error, ContainsSubstring("worker-1, worker-2, worker-3: its pod digits-worker-1-"));
  CHECK(times(error, "cannot start (no image)") == 1);
}

TEST_CASE("a worker that is about to be taken away gives its trials back, and is there again") {
  TemporaryDirectory folder;
  const Hosts hosts(1);
  std::atomic<bool> told{false};
  std::atomic<int> dials{0}, finished{0};
  remote::ElasticExecutor executor("elastic", [&](const Workload&) {
    auto plan = plan_of(hosts, 1);
    plan.workers[0].dialer = WatchedDialer{plan.workers[0].dialer, [&] { ++dials; }};
    return remote::ElasticExperiment{
        .plan = std::move(plan),
        .hooks = {.poll =
                      [&](remote::ElasticWorkers& workers) {
                        const auto accounts = workers.accounts();
                        if (!accounts.empty() && is_usable(accounts[0].state) && !told.exchange(true))
                          workers.give_notice("worker-1", "its node is drained", 20);
                        return 0.1;
                      },
                  .finish = [&](bool) { ++finished; }},
        .notices = nullptr};
  });
  auto options = unordered(folder.path() / "run", executor, 1, 200);
  options.checkpoint.every = 0;  // saved where it is asked to leave, and nowhere else
  const auto results = run(options);
  INFO(story(results));
  CHECK(told);
  CHECK(dials == 2);
  CHECK(finished == 1);
  REQUIRE(results.size() == 1);
  CHECK(results.trials()[0].steps == 200);
  CHECK(results.failures(FailureSource::preemption) == 1);
  CHECK(results.failures(FailureSource::infrastructure) == 0);
  CHECK(results.failures(FailureSource::user) == 0);
  CHECK_THAT(story(results), ContainsSubstring("worker-1 is lost: its node is drained"));
  check_reports(results);  // no step was lost, none done twice
  CHECK(results.experiment().executor == "elastic");
}

TEST_CASE("a backend that cannot be asked for a while does not end the run") {
  TemporaryDirectory folder;
  const Hosts hosts(1);
  std::atomic<int> looks{0};
  remote::ElasticExecutor executor("elastic", [&](const Workload&) {
    auto plan = plan_of(hosts, 1);
    plan.workers[0].dialer = WatchedDialer{plan.workers[0].dialer, [&] { eventually([&] { return looks >= 2; }, 60); }};
    return remote::ElasticExperiment{.plan = std::move(plan),
                                     .hooks = {.poll = [&](remote::ElasticWorkers&) -> double {
                                       if (looks++ == 0) fail(Errc::io, "no descriptor is left");
                                       return 0.1;
                                     }},
                                     .notices = nullptr};
  });
  auto options = unordered(folder.path() / "run", executor, 1, 20);
  options.display = Display::plain;
  std::optional<Results> results;
  const auto lines = said([&] { results = run(options); });
  INFO(lines);
  REQUIRE(results->size() == 1);
  CHECK(results->trials()[0].steps == 20);
  CHECK_THAT(lines, ContainsSubstring("workers cannot be looked after, tries again: no descriptor is left"));
}

TEST_CASE("a backend learns which workers end, and when all is over") {
  TemporaryDirectory folder;
  const Hosts hosts(1);
  std::mutex mutex;
  std::set<std::string> ended;
  std::vector<pid_t> left_at_finish;
  remote::ElasticExecutor executor("elastic", [&](const Workload&) {
    return remote::ElasticExperiment{.plan = plan_of(hosts, 2),
                                     .hooks = {.ended =
                                                   [&](const std::string& worker) {
                                                     const std::lock_guard hold(mutex);
                                                     ended.insert(worker);
                                                   },
                                               .finish = [&](bool) { left_at_finish = hosts.agents("worker-1"); }},
                                     .notices = nullptr};
  });
  // Two run at first; the second worker is ended while the first one goes on alone.
  const auto results = run(unordered(folder.path() / "run", executor, 3, 80));
  INFO(story(results));
  CHECK(results.size() == 3);
  CHECK(results.failures(FailureSource::user) == 0);
  CHECK(results.failures(FailureSource::infrastructure) == 0);
  CHECK(ended.size() == 1);
  CHECK(left_at_finish.empty());
  check_reports(results);
}
