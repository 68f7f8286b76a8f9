// Workers that come and go with the queue, whatever they are: here child processes.
#include "agents.hpp"
#include "experiments.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/remote/elastic.hpp>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;

namespace {

remote::ElasticPlan plan_of(const Hosts& hosts, int workers) {
  remote::ElasticPlan plan{.min = 0, .idle = 0.3, .remote = {.timeouts = {.first_delay = 0.05}, .program = "learner"}};
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

}  // namespace

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
        .hooks = {.look =
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
