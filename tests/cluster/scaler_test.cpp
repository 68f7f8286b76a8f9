// The scaler, the cluster and the journal over a provider in memory, with threads and in real time.
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/cluster/scaler.hpp>
#include <hypertune/cluster/ssh_access.hpp>

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ht = hypertune;
using namespace hypertune::cluster;

namespace {

// Machines that are there at once, unless it is told to fail.
struct Cloud {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, Machine> machines;
  std::function<void(const LaunchRequest&)> before_create = {};
  int deaf_lists = 0;     // so many calls of list() fail once a machine is there
  bool addresses = true;  // create() says them already, not only list()
  int made = 0;
  bool lose_answer = false;

  std::size_t count() {
    const std::lock_guard lock(mutex);
    return machines.size();
  }
  template <class F>
  bool await(F condition) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(20), condition);
  }
};
struct CloudProvider {
  std::shared_ptr<Cloud> cloud;
  std::vector<Machine> list() {
    const std::lock_guard lock(cloud->mutex);
    if (!cloud->machines.empty() && cloud->deaf_lists > 0 && cloud->deaf_lists-- > 0)
      throw ProviderError(ProviderFailure::failed, "asked too often");
    std::vector<Machine> all;
    for (const auto& [id, machine] : cloud->machines) all.push_back(machine);
    return all;
  }
  Machine create(const LaunchRequest& request) {
    if (cloud->before_create) cloud->before_create(request);
    const std::lock_guard lock(cloud->mutex);
    for (const auto& [id, machine] : cloud->machines)
      if (machine.token == request.token) return machine;
    Machine machine;
    machine.id = machine.address = "m" + std::to_string(cloud->made++);
    machine.token = request.token;
    machine.node_type = request.node_type;
    machine.head = request.head;
    machine.spot = request.spot;
    machine.state = MachineState::running;
    cloud->machines[machine.id] = machine;
    cloud->changed.notify_all();
    if (!cloud->addresses) {
      machine.state = MachineState::pending;
      machine.address.clear();
    }
    if (cloud->lose_answer) throw ProviderError(ProviderFailure::failed, "the line went dead");
    return machine;
  }
  void terminate(const std::vector<std::string>& ids) {
    const std::lock_guard lock(cloud->mutex);
    for (const auto& id : ids) cloud->machines.erase(id);
    cloud->changed.notify_all();
  }
  void stop(const std::vector<std::string>&) {}
  void start(const std::vector<std::string>&) {}
  std::optional<ht::Resources> resources_of(const NodeType&) { return std::nullopt; }
  double listing_delay() const { return 0; }
};
static_assert(Provider<CloudProvider>);

ClusterConfig config(const std::string& more = "", const std::string& provider = "") {
  return cluster_from_yaml(
      ht::load_yaml_text("cluster_name: test\nmax_workers: 4\nprovider: {type: command, command: none" + provider +
                         "}\n"
                         "idle_timeout_minutes: 0.005\navailable_node_types:\n"
                         "  w: {resources: {CPU: 2}, max_workers: 4, spot: true, price: {on_demand: 2, spot: 0.5}}\n" +
                         more));
}

struct Queue {
  std::mutex mutex;
  HostDemand demand;
  void set(HostDemand next) {
    const std::lock_guard lock(mutex);
    demand = std::move(next);
  }
  HostDemand get() {
    const std::lock_guard lock(mutex);
    return demand;
  }
};

ScalerOptions quick(std::vector<std::string>* log = nullptr, std::mutex* mutex = nullptr) {
  ScalerOptions options;
  options.tick = 0.02;
  options.poll = 0.05;
  options.set_up = [](const Machine& machine) { return MachineReport{machine, "", {}}; };
  if (log != nullptr)
    options.log = [log, mutex](const std::string& line) {
      const std::lock_guard lock(*mutex);
      log->push_back(line);
    };
  return options;
}

// In place of the user's ssh: a script, or nothing at all.
class SshInPath {
 public:
  explicit SshInPath(const std::string& script) : path_(std::getenv("PATH")) {
    if (!script.empty()) {
      std::ofstream(folder_.path() / "ssh") << "#!/bin/sh\n" << script;
      std::filesystem::permissions(folder_.path() / "ssh", std::filesystem::perms::owner_all);
    }
    ::setenv("PATH", folder_.path().c_str(), 1);
  }
  SshInPath(const SshInPath&) = delete;
  SshInPath& operator=(const SshInPath&) = delete;
  ~SshInPath() { ::setenv("PATH", path_.c_str(), 1); }

 private:
  TemporaryDirectory folder_;
  std::string path_;
};

}  // namespace

TEST_CASE("the scaler grows with the queue, offers its hosts, and shrinks when they are idle") {
  TemporaryDirectory folder;
  auto cloud = std::make_shared<Cloud>();
  Cluster cluster(config(), CloudProvider{cloud}, folder.path() / "state", {}, SshAccess());
  Queue queue;
  std::vector<std::string> log;
  std::mutex log_mutex;
  {
    ClusterScaler scaler(cluster, [&] { return queue.get(); }, quick(&log, &log_mutex));
    queue.set({{{{.cpus = 1}, 6}}, {}});
    REQUIRE(cloud->await([&] { return cloud->machines.size() == 3; }));
    auto source = scaler.host_source(0.01);
    std::vector<std::string> names;
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
         names.size() < 3 && std::chrono::steady_clock::now() < end;) {
      source.poll();
      names.clear();
      for (const auto& host : source.hosts()) names.push_back(host.name);
      std::unique_lock lock(cloud->mutex);
      cloud->changed.wait_for(lock, std::chrono::milliseconds(5));
    }
    REQUIRE(names.size() == 3);
    CHECK(source.hosts()[0].cpus == 2);
    CHECK(source.hosts()[0].labels.at("market") == "spot");
    std::ifstream ssh(SshAccess::ssh_config(cluster));
    const std::string text((std::istreambuf_iterator<char>(ssh)), {});
    CHECK_THAT(text, ContainsSubstring("Host " + names[0]));
    CHECK_THROWS_AS(scaler.require_possible({.cpus = 3}), ht::Error);
    // One stays busy: it is never ended.
    queue.set({{}, {{names[1], {{.cpus = 1}}}}});
    const auto until = [&](std::size_t left) {  // the executor goes on asking for its hosts
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
      while (cloud->count() != left && std::chrono::steady_clock::now() < end) {
        source.poll();
        std::unique_lock lock(cloud->mutex);
        cloud->changed.wait_for(lock, std::chrono::milliseconds(5));
      }
    };
    until(1);
    {
      const std::lock_guard lock(cloud->mutex);
      REQUIRE(cloud->machines.size() == 1);
      CHECK(names[1] == "hypertune-test-" + cloud->machines.begin()->first);
    }
    queue.set({});
    until(0);
    REQUIRE(cloud->await([&] { return cloud->machines.empty(); }));
    CHECK(scaler.cost().machines() == 3);
    CHECK(scaler.cost().saved() > 0);
  }
  const std::lock_guard lock(log_mutex);
  CHECK(std::any_of(log.begin(), log.end(),
                    [](const auto& line) { return line.find("launch 3 machines (w, spot at 0.5/h)") == 0; }));
}

TEST_CASE("no spot: on-demand; a lost machine is replaced; one that cannot be set up is ended") {
  TemporaryDirectory folder;
  auto cloud = std::make_shared<Cloud>();
  cloud->before_create = [](const LaunchRequest& request) {
    if (request.spot) throw ProviderError(ProviderFailure::capacity, "no spot");
  };
  Cluster cluster(config(), CloudProvider{cloud}, folder.path() / "state", {}, SshAccess());
  Queue queue;
  std::atomic<int> set_ups{0};
  auto options = quick();
  options.set_up = [&](const Machine& machine) {
    return MachineReport{machine, set_ups++ == 0 ? "its disk is full" : "", {}};
  };
  queue.set({{{{.cpus = 2}, 1}}, {}});
  ClusterScaler scaler(cluster, [&] { return queue.get(); }, options);
  REQUIRE(cloud->await([&] { return cloud->made >= 1 && cloud->machines.empty(); }));  // the first is ended
  scaler.stop();
  for (const auto& machine : cluster.reconcile()) CHECK_FALSE(machine.spot);
  CHECK(cluster.down() == 0);
}

TEST_CASE("an answer that is lost loses no machine, and down ends what the journal never heard of") {
  TemporaryDirectory folder;
  auto cloud = std::make_shared<Cloud>();
  const auto state = folder.path() / "state";
  const auto c = config();
  {
    Cluster cluster(c, CloudProvider{cloud}, state, {}, SshAccess());
    cloud->lose_answer = true;
    const auto machine = cluster.launch(c.types[0], true, false);
    CHECK(machine.id == "m0");
    cloud->lose_answer = false;
    CHECK_THROWS_AS(Cluster(c, CloudProvider{cloud}, state), ht::Error);  // one driver at a time
    CHECK_FALSE(ClusterJournal::driver_of(state).empty());
  }
  CHECK(ClusterJournal::driver_of(state).empty());
  CloudProvider{cloud}.create(
      {.token = "elsewhere", .node_type = "w", .node_config = "{}", .head = false, .spot = false});
  {
    std::ofstream journal(state / "journal.jsonl", std::ios::app);  // torn by a crash
    journal << R"({"t":1,"op":"wa)";
  }
  Cluster cluster(c, CloudProvider{cloud}, state, {}, SshAccess());
  CHECK(cluster.down() == 2);
  CHECK(cloud->count() == 0);
  CHECK(cluster.down() == 0);
  for (const auto& entry : cluster.journal().ledger().entries) CHECK_FALSE(entry.open());
}

TEST_CASE("a wish is on the disk before the provider is asked") {
  TemporaryDirectory folder;
  auto cloud = std::make_shared<Cloud>();
  const auto state = folder.path() / "state";
  bool written = false;
  cloud->before_create = [&](const LaunchRequest& request) {
    auto ledger = ClusterJournal::read(state);
    const auto* entry = ledger.find(request.token);
    written = entry != nullptr && entry->state == LedgerEntry::State::requested;
  };
  Cluster cluster(config(), CloudProvider{cloud}, state, {}, SshAccess());
  cluster.launch(cluster.config().types[0], false, false);
  CHECK(written);
}

TEST_CASE("up ends a machine that never answered, and none for what failed elsewhere") {
  struct Case {
    const char *ssh, *error;
    bool ended;
    int deaf_lists = 1;
    const char* patience = "0.5s";
  };
  const Case it = GENERATE(
      Case{"echo 'ssh: connect to host m0 port 22: Connection refused' >&2; exit 255\n", "Connection refused", true},
      Case{"echo 'me@m0: Permission denied (publickey).' >&2; exit 255\n", "refuses the login", false},
      // It answered once, as long as its network was there.
      Case{"if [ -e \"$0.again\" ]; then echo 'ssh: connect to host m0 port 22: Connection refused' >&2; exit 255; fi\n"
           ": >\"$0.again\"; echo 'me@m0: Permission denied (publickey).' >&2; exit 255\n",
           "Connection refused", false},
      Case{"", "no ssh client", false}, Case{"exit 255\n", "asked too often", false, 1'000'000, "0s"});
  CAPTURE(it.ssh, it.deaf_lists);
  const TemporaryDirectory folder;
  auto cloud = std::make_shared<Cloud>();
  cloud->deaf_lists = it.deaf_lists;
  cloud->addresses = false;
  std::string said;
  ClusterHooks hooks;
  hooks.say = [&](const std::string& line) { said += line + "\n"; };
  Cluster cluster(config("", fmt::format(", start_timeout: {}", it.patience)), CloudProvider{cloud},
                  folder.path() / "state", hooks, SshAccess());
  const SshInPath ssh(it.ssh);
  const auto reports = cluster.up();
  REQUIRE(reports.size() == 1);
  CHECK_THAT(reports[0].error, ContainsSubstring(it.error));
  CHECK(cloud->count() == (it.ended ? 0U : 1U));
  CHECK((said.find("never answered") != std::string::npos) == it.ended);
}
