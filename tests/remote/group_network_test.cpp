// Trials of several workers on hosts of which some have no address in the network that is named for them.
#include "agents.hpp"
#include "played_hosts.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/remote/elastic.hpp>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;

namespace {

struct Config {
  double x = 0;
};
Training nothing(Config config) { co_yield report("value", config.x); }  // of which agents that are played run nothing

const std::vector<std::string> near{"127.0.0.1", "10.1.0.5"}, far{"127.0.0.1", "10.2.0.5"};

remote::RemoteOptions patient() {
  remote::RemoteOptions options;
  options.timeouts = {.heartbeat = 60, .connect = 60, .first_delay = 0.05, .max_delay = 0.2, .stable = 60};
  return options;
}
Options sweep(const TemporaryDirectory& folder, AnyExecutor executor, Workers workers) {
  Options options;
  options.executor = std::move(executor);
  options.samples = 4;
  options.workers = workers;
  options.group.network = "10.1.0.0/16";
  options.output = folder.path() / "run";
  options.display = Display::quiet;
  options.handle_signals = false;
  return options;
}
Results run(Options options) {
  return tune(space<Config>(dim("x", &Config::x, uniform(0.0, 1.0))), nothing, std::move(options));
}

/// The hosts of each attempt, "0 2".
struct Starts {
  std::shared_ptr<std::set<std::string>> hosts = std::make_shared<std::set<std::string>>();
  void on_trial_start(const record::TrialStarted& e) const {
    std::vector<std::string> names{e.host};
    for (const auto& place : e.others) names.push_back(place.host);
    std::sort(names.begin(), names.end());
    std::string text;
    for (const auto& name : names) text += (text.empty() ? "" : " ") + name;
    hosts->insert(text);
  }
};

/// Why the experiment has ended.
struct Ends {
  std::shared_ptr<std::string> why = std::make_shared<std::string>();
  void on_experiment_end(const record::ExperimentEnded& e) const { *why = e.why; }
};

/// Workers of a cluster, as backends offer them: nobody knows where one is before it is there.
remote::ElasticExecutor cluster_of(const PlayedHosts& played, int count) {
  return {"cluster", [&played, count](const Workload&) {
            remote::ElasticPlan plan;
            plan.min = count;
            plan.remote = patient();
            for (const auto& host : played.pool(count).hosts())
              plan.workers.push_back({.name = host.name, .total = {.cpus = 1}, .dialer = host.dialer});
            return remote::ElasticExperiment{std::move(plan), {}, {}};
          }};
}

}  // namespace

TEST_CASE("trials on several hosts take those that have told an address in the network") {
  const PlayedHosts played({.steps = 2, .cpus = 1, .addresses = {near, far, near, far}});
  played.allow(2);
  const TemporaryDirectory folder;
  auto options = sweep(folder, RemoteExecutor(played.pool(4), patient()), {2});
  const Starts starts;
  options.callbacks = {starts};
  CHECK(run(std::move(options)).count(TrialState::completed) == 4);
  CHECK(*starts.hosts == std::set<std::string>{"0 2"});
}

TEST_CASE("a trial on one host alone takes any, whatever its addresses") {
  const PlayedHosts played({.steps = 1, .cpus = 2, .addresses = {far, far}});
  played.allow(1);
  const TemporaryDirectory folder;
  auto options = sweep(folder, RemoteExecutor(played.pool(2), patient()), {2});
  const Starts starts;
  options.callbacks = {starts};
  CHECK(run(std::move(options)).count(TrialState::completed) == 4);
  CHECK(*starts.hosts == std::set<std::string>{"0 0", "1 1"});
}

TEST_CASE("trials that no hosts hold which reach each other are refused before anything starts") {
  const PlayedHosts played({.steps = 1, .cpus = 1, .addresses = {near, far, far}});
  const TemporaryDirectory folder;
  remote::RemoteOptions options = patient();
  options.gather = 60;
  const auto error = [&] {
    try {
      run(sweep(folder, RemoteExecutor(played.pool(3), options), {2}));
    } catch (const Error& e) {
      CHECK(e.code() == Errc::resources);
      return std::string(e.what());
    }
    return std::string();
  }();
  CHECK_THAT(error, ContainsSubstring("needs 2 workers with 1 cpu each, but hosts that reach each other have room for "
                                      "1: host '1', host '2' have no address in group.network '10.1.0.0/16' (host "
                                      "'1': 10.2.0.5); name a network that all of them are in"));
  CHECK(played.counts().launches == 0);
}

TEST_CASE("workers of a cluster are known to be outside of the network when they are there") {
  for (const bool ordered : {false, true}) {
    const PlayedHosts played({.steps = 1, .cpus = 1, .addresses = {far, near, near}});
    played.allow(1);
    const TemporaryDirectory folder;
    auto options = sweep(folder, cluster_of(played, 3), {2});
    options.ordered = ordered;
    CHECK(run(std::move(options)).count(TrialState::completed) == 4);
    CHECK(played.counts().launches == 8);
  }
}

TEST_CASE("an experiment ends with one error where no workers of a cluster reach each other") {
  const PlayedHosts played({.steps = 1, .cpus = 1, .addresses = {far, near}});
  const TemporaryDirectory folder;
  auto options = sweep(folder, cluster_of(played, 2), {2});
  const Ends ends;
  options.callbacks = {ends};
  const auto results = run(std::move(options));
  CHECK(played.counts().launches == 0);
  CHECK(results.count(TrialState::completed) == 0);
  CHECK_THAT(*ends.why, ContainsSubstring("no trial can run any more: needs 2 workers with 1 cpu each, but hosts that "
                                          "reach each other have room for 1: host '0' has no address in"));
}

TEST_CASE("agents tell the addresses of their host") {
  const Hosts hosts(2);
  RemoteExecutor executor(hosts.pool(1), patient());
  const auto found = executor.hosts();
  REQUIRE(found.size() == 1);
  const auto& addresses = found.front().addresses;
  CHECK(std::find(addresses.begin(), addresses.end(), "127.0.0.1") != addresses.end());
  executor.shutdown();
}
