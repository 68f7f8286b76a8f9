// Trials of several pods each, of experiments that share a cluster without room for all of them.
#include "k8s/support/account.hpp"
#include "k8s/support/pod_experiments.hpp"
#include "permissions.hpp"

#include <hypertune/detail/run_clock.hpp>

#include <exception>
#include <optional>
#include <string>
#include <thread>

using namespace hypertune;
using namespace hypertune::test;

namespace {

constexpr int workers_each = 4;
constexpr double share = 0.19;  // of a node: five pods have room

/// Pods of this class of priority that run.
int running_of(const TestKubernetes& kubernetes, const std::string& priority) {
  int count = 0;
  for (const auto& pod : kubernetes.pods()) {
    const auto& spec = pod.at("spec").as_object();
    const auto* own = spec.if_contains("priorityClassName");
    const bool is = own == nullptr ? priority.empty() : own->as_string() == std::string_view(priority);
    count += is && pod.at("status").at("phase").as_string() == "Running" &&
             !pod.at("metadata").as_object().contains("deletionTimestamp");
  }
  return count;
}

/// Pods of this class of priority for which the scheduler has found no room.
int unplaced_of(const TestKubernetes& kubernetes, const std::string& priority) {
  int count = 0;
  for (const auto& pod : kubernetes.pods()) {
    const auto* own = pod.at("spec").as_object().if_contains("priorityClassName");
    const auto* conditions = pod.at("status").as_object().if_contains("conditions");
    count += own != nullptr && own->as_string() == std::string_view(priority) && conditions != nullptr &&
             boost::json::serialize(*conditions).find("Unschedulable") != std::string::npos;
  }
  return count;
}

/// A class of pods that are placed before others, and of which none is taken away for them.
class FirstServed {
 public:
  static constexpr const char* name = "hypertune-test-first-served";
  explicit FirstServed(const TestKubernetes& kubernetes) : kubernetes_(kubernetes) {
    kubernetes_.create({"apis", "scheduling.k8s.io", "v1", "priorityclasses"},
                       {{"metadata", {{"name", name}}}, {"value", 1000}, {"preemptionPolicy", "Never"}});
  }
  FirstServed(const FirstServed&) = delete;
  FirstServed& operator=(const FirstServed&) = delete;
  ~FirstServed() {
    try {
      kubernetes_.remove({"apis", "scheduling.k8s.io", "v1", "priorityclasses", name});
    } catch (const std::exception& error) { WARN(error.what()); }
  }

 private:
  const TestKubernetes& kubernetes_;
};

/// A pod that takes the room of two, until it is removed.
void take_room(const TestKubernetes& kubernetes, const std::string& node, double cpus) {
  const boost::json::object container{{"name", "main"},
                                      {"image", TestKubernetes::image},
                                      {"imagePullPolicy", "Never"},
                                      {"command", {"/bin/sleep", "1000"}},
                                      {"resources", {{"requests", {{"cpu", fmt::format("{:.0f}m", cpus * 1000)}}}}}};
  kubernetes.create({"api", "v1", "namespaces", kubernetes.name_space(), "pods"},
                    {{"metadata", {{"name", "taken"}}},
                     {"spec",
                      {{"nodeSelector", {{"kubernetes.io/hostname", node}}},
                       {"priorityClassName", FirstServed::name},
                       {"dnsPolicy", "Default"},
                       {"containers", boost::json::array{container}}}}});
}

}  // namespace

TEST_CASE("two experiments of groups that each hold a part of a full cluster give it back, and both end") {
  const auto kubernetes = test_kubernetes("groups");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  const auto [name, room] = first_node(*kubernetes);
  const double cpus = share * room;
  const FirstServed first(*kubernetes);
  // One that may not have its pods placed all or none.
  const Account account(*kubernetes);
  account.allow(k8s::permissions_for({k8s::Use::workers, k8s::Use::exec, k8s::Use::owner_job}), {});
  const auto options_of = [&](const std::string& run, const std::string& priority) {
    auto setup = workers_of(*kubernetes, workers_each);
    setup.options.kubeconfig = account.kubeconfig();
    setup.options.cpus = cpus;
    setup.options.node_selector = {{"kubernetes.io/hostname", name}};
    setup.options.priority_class = priority;
    setup.options.group_timeout = 10;
    setup.options.idle_timeout = 2;
    auto options = small(folder.path() / run, KubernetesExecutor(setup), 1, 10);
    options.resources.cpus = cpus;
    options.workers = {.min = workers_each};
    return options;
  };
  // Three and two, which neither would give up: what has room for two is free only when both wait.
  take_room(*kubernetes, name, 2 * cpus);
  REQUIRE(eventually([&] { return running_of(*kubernetes, FirstServed::name) == 1; }, 60));
  bool held = false;
  Results other;
  std::jthread second;
  const auto results = run_disturbed(options_of("a", ""), [&](const Until& until) {
    if (!until([&] { return running_of(*kubernetes, "") == 3; })) return;
    second = std::jthread([&] {
      try {
        other = run(options_of("b", FirstServed::name));
      } catch (const std::exception& error) { WARN("the other one: " << error.what()); }
    });
    // The scheduler does not look at a pod for which it found no room for a second or two: until then others go first.
    constexpr double back_off = 3;
    std::optional<double> since;
    until([&] {
      if (unplaced_of(*kubernetes, FirstServed::name) == workers_each && !since)
        since = hypertune::detail::steady_seconds();
      return since && hypertune::detail::steady_seconds() - *since > back_off;
    });
    kubernetes->remove_pod("taken", 0);
    held = until([&] { return running_of(*kubernetes, "") == 3 && running_of(*kubernetes, FirstServed::name) == 2; });
  });
  if (second.joinable()) second.join();
  REQUIRE(held);
  for (const auto& each : {results, other}) {
    check_whole(each, 1, 10);
    CHECK(each.failures(FailureSource::infrastructure) == 0);
    CHECK(each.failures(FailureSource::preemption) == 0);
  }
  CHECK(eventually([&] { return kubernetes->is_empty(); }, 60));
}

TEST_CASE("a trial's pods are placed all or none where Kubernetes does that") {
  const auto kubernetes = test_kubernetes("gang");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  const auto [name, room] = first_node(*kubernetes);
  const double cpus = share * room;
  const auto groups = [&] {
    return kubernetes
        ->get({"apis", "scheduling.k8s.io", "v1beta1", "namespaces", kubernetes->name_space(), "podgroups"})
        ->at("items")
        .as_array();
  };
  const FirstServed first(*kubernetes);
  take_room(*kubernetes, name, 2 * cpus);
  REQUIRE(eventually([&] { return running_of(*kubernetes, FirstServed::name) == 1; }, 60));
  auto setup = workers_of(*kubernetes, workers_each);
  setup.options.cpus = cpus;
  setup.options.node_selector = {{"kubernetes.io/hostname", name}};
  auto options = small(folder.path() / "run", KubernetesExecutor(setup), 1, 10);
  options.resources.cpus = cpus;
  options.workers = {.min = workers_each};
  int unplaced = 0, placed = 0, of_group = 0;
  const auto results = run_disturbed(options, [&](const Until& until) {
    // Three of the four have room.
    until([&] {
      unplaced = placed = 0;
      for (const auto& pod : kubernetes->pods()) {
        if (pod.at("metadata").at("name").as_string() == "taken") continue;
        placed += pod.at("spec").as_object().contains("nodeName") ? 1 : 0;
        const auto* conditions = pod.at("status").as_object().if_contains("conditions");
        unplaced +=
            conditions != nullptr && boost::json::serialize(*conditions).find("Unschedulable") != std::string::npos ? 1
                                                                                                                    : 0;
      }
      return unplaced == workers_each;
    });
    of_group = static_cast<int>(groups().size());
    kubernetes->remove_pod("taken", 0);
  });
  CHECK(unplaced == workers_each);
  CHECK(placed == 0);
  CHECK(of_group == 1);
  check_whole(results, 1, 10);
  CHECK(results.failures(FailureSource::infrastructure) == 0);
  CHECK(eventually([&] { return kubernetes->is_empty() && groups().empty(); }, 60));
}
