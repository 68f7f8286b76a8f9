// Machines whose provider says why they do not run: what is told, which are given up, and what is left behind.
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/cluster/cluster.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace ht = hypertune;
using namespace hypertune::cluster;

namespace {

// What it makes waits, and may fail or cannot start as it is told.
struct Nodes {
  std::mutex mutex;
  std::vector<Machine> machines;
  std::string end;  // of those that are not shown
  bool may_fail = false, cannot_start = false, shown = true;
  int made = 0, cleared = 0;
};
struct NodeProvider {
  std::shared_ptr<Nodes> nodes;

  std::vector<Machine> list() const {
    const std::lock_guard lock(nodes->mutex);
    return nodes->shown ? nodes->machines : std::vector<Machine>();
  }
  Machine create(const LaunchRequest& request) const {
    const std::lock_guard lock(nodes->mutex);
    Machine machine;
    machine.id = "m" + std::to_string(nodes->made++);
    machine.token = request.token;
    machine.node_type = request.node_type;
    machine.head = request.head;
    machine.waiting_reason = "waits for its image";
    machine.may_fail = nodes->may_fail;
    machine.cannot_start = nodes->cannot_start;
    nodes->machines.push_back(machine);
    return machine;
  }
  void terminate(const std::vector<std::string>& ids) const {
    const std::lock_guard lock(nodes->mutex);
    std::erase_if(nodes->machines,
                  [&](const Machine& machine) { return std::find(ids.begin(), ids.end(), machine.id) != ids.end(); });
  }
  void stop(const std::vector<std::string>&) const {}
  void start(const std::vector<std::string>&) const {}
  std::optional<ht::Resources> resources_of(const NodeType&) const { return std::nullopt; }
  double listing_delay() const { return 0; }
  std::string explain(const std::string&) const { return nodes->end; }
  void clear() const { ++nodes->cleared; }
};
static_assert(Provider<NodeProvider>);

struct Fixture {
  TemporaryDirectory folder;
  std::shared_ptr<Nodes> nodes = std::make_shared<Nodes>();
  std::vector<std::string> said;

  std::unique_ptr<Cluster> cluster(const std::string& start_timeout) {
    auto config = cluster_from_yaml(ht::load_yaml_text(
        "cluster_name: test\nprovider: {type: command, command: none, start_timeout: " + start_timeout + "}\n"));
    return std::make_unique<Cluster>(
        config, NodeProvider{nodes}, folder.path() / "state",
        ClusterHooks{.say = [this](const std::string& line) { said.push_back(line); }, .stop = {}});
  }
};

}  // namespace

TEST_CASE("a machine that can never run is given up at once, with the provider's reason") {
  Fixture fixture;
  fixture.nodes->may_fail = fixture.nodes->cannot_start = true;
  const auto cluster = fixture.cluster("10m");
  const auto machine = cluster->launch(cluster->config().head(), false, true);
  CHECK_THROWS_WITH(cluster->await_address(machine), ContainsSubstring("machine m0: it waits for its image"));
  CHECK_THROWS_AS(cluster->await_address(machine), CannotStart);
}

TEST_CASE("a machine that is in doubt is given up after a while, one that waits when its time is over") {
  Fixture fixture;
  const auto cluster = fixture.cluster("0.3s");
  const auto waiting = cluster->launch(cluster->config().head(), false, true);
  try {
    cluster->await_address(waiting);
    FAIL("it came up");
  } catch (const CannotStart&) { FAIL("it may still come"); } catch (const ht::Error& error) {
    CHECK_THAT(error.what(),
               ContainsSubstring("it waits for its image after") && ContainsSubstring("provider.start_timeout"));
  }
  cluster->terminate({waiting}, "test");
  fixture.nodes->may_fail = true;
  CHECK_THROWS_AS(cluster->await_address(cluster->launch(cluster->config().head(), false, true)), CannotStart);
}

TEST_CASE("how a machine has ended that is shown no more is said, and down clears what is left") {
  Fixture fixture;
  const auto cluster = fixture.cluster("10m");
  const auto machine = cluster->launch(cluster->config().head(), false, true);
  fixture.nodes->shown = false;
  CHECK_THROWS_WITH(cluster->await_address(machine), ContainsSubstring("machine m0: it is gone before it was up"));
  fixture.nodes->end = "ended with exit code 127";
  CHECK_THROWS_WITH(cluster->await_address(machine), ContainsSubstring("machine m0: it ended with exit code 127"));
  CHECK(cluster->down({.workers_only = true}) == 0);
  CHECK(fixture.nodes->cleared == 0);
  CHECK(cluster->down() == 0);
  CHECK(fixture.nodes->cleared == 1);
}
