// What users of a namespace and admins of a cluster do to pods that run trials: no step is lost, and no failure
// counted.
#include "k8s/support/pod_experiments.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;

namespace {

std::string node_of(const boost::json::object& pod) {
  const auto* node = pod.at("spec").as_object().if_contains("nodeName");
  return node == nullptr ? std::string() : std::string(node->as_string());
}
std::vector<std::string> pods_on(const TestKubernetes& kubernetes, const std::string& node) {
  std::vector<std::string> names;
  for (const auto& pod : kubernetes.pods())
    if (node_of(pod) == node) names.emplace_back(pod.at("metadata").at("name").as_string());
  return names;
}

/// No pod is placed on the node as long as this is there.
class Cordon {
 public:
  Cordon(const TestKubernetes& kubernetes, std::string node) : kubernetes_(kubernetes), node_(std::move(node)) {
    set("true");
  }
  Cordon(const Cordon&) = delete;
  Cordon& operator=(const Cordon&) = delete;
  ~Cordon() {
    try {
      set("false");
    } catch (const std::exception& error) { WARN(error.what()); }
  }

 private:
  void set(const char* cordoned) const {
    kubernetes_.change({"api", "v1", "nodes", node_}, fmt::format(R"({{"spec": {{"unschedulable": {}}}}})", cordoned));
  }
  const TestKubernetes& kubernetes_;
  std::string node_;
};

/// A class of pods that others make way for, and a pod of it that takes half of a node.
class UrgentPod {
 public:
  static constexpr const char* name = "urgent";

  UrgentPod(const TestKubernetes& kubernetes, const std::string& node, double cpus) : kubernetes_(kubernetes) {
    kubernetes_.create({"apis", "scheduling.k8s.io", "v1", "priorityclasses"},
                       {{"metadata", {{"name", class_}}}, {"value", 1000}});
    const boost::json::object container{{"name", "main"},
                                        {"image", TestKubernetes::image},
                                        {"imagePullPolicy", "Never"},
                                        {"command", {"/bin/sleep", "1000"}},
                                        {"resources", {{"requests", {{"cpu", fmt::format("{:.0f}m", cpus * 1000)}}}}}};
    const boost::json::object pod{{"metadata", {{"name", name}}},
                                  {"spec",
                                   {{"priorityClassName", class_},
                                    {"nodeSelector", {{"kubernetes.io/hostname", node}}},
                                    {"dnsPolicy", "Default"},
                                    {"containers", boost::json::array{container}}}}};
    // The API server knows the class a moment after it has made it.
    eventually([&] {
      try {
        kubernetes_.create({"api", "v1", "namespaces", kubernetes_.name_space(), "pods"}, pod);
      } catch (const k8s::ApiError& error) {
        if (!error.forbidden()) throw;
        return false;
      }
      return true;
    });
  }
  UrgentPod(const UrgentPod&) = delete;
  UrgentPod& operator=(const UrgentPod&) = delete;
  ~UrgentPod() {
    try {
      kubernetes_.remove_pod(name, 0);
      kubernetes_.remove({"apis", "scheduling.k8s.io", "v1", "priorityclasses", class_});
    } catch (const std::exception& error) { WARN(error.what()); }
  }

  bool runs() const {
    const auto names = kubernetes_.running();
    return std::find(names.begin(), names.end(), name) != names.end();
  }
  /// Whether a pod of a worker waits for the room that this one has.
  bool is_in_the_way() const {
    for (const auto& pod : kubernetes_.pods())
      if (pod.at("metadata").at("name").as_string() != name && node_of(pod).empty()) {
        const auto* conditions = pod.at("status").as_object().if_contains("conditions");
        if (conditions != nullptr && boost::json::serialize(*conditions).find("Insufficient cpu") != std::string::npos)
          return true;
      }
    return false;
  }

 private:
  static constexpr const char* class_ = "hypertune-test-urgent";
  const TestKubernetes& kubernetes_;
};

}  // namespace

TEST_CASE("a pod that is evicted is a notice: its trial saves, and goes on in another one without a step lost") {
  const auto kubernetes = test_kubernetes("evicted");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  bool evicted = false;
  const auto results =
      run_disturbed(saves_when_told(folder.path() / "run", KubernetesExecutor(workers_of(*kubernetes, 1)), 1, 100),
                    [&](const Until& until) {
                      // A pod reports before Kubernetes says that it runs.
                      std::vector<std::string> pods;
                      if (!until([&] {
                            if (reports(folder.path() / "run") < 10) return false;
                            pods = kubernetes->running();
                            return !pods.empty();
                          }))
                        return;
                      kubernetes->evict(pods.front());
                      evicted = true;
                    });
  REQUIRE(evicted);
  check_whole(results, 1, 100);
  check_none_again(results);
  CHECK(eventually([&] { return kubernetes->is_empty(); }, 60));
}

TEST_CASE("a node that is drained: all of its trials save, and go on elsewhere") {
  const auto kubernetes = test_kubernetes("drained");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  std::string drained;
  std::set<std::string> later;  // nodes on which pods run once nothing is on that one any more
  const auto results = run_disturbed(
      saves_when_told(folder.path() / "run", KubernetesExecutor(workers_of(*kubernetes, 3)), 3, 150),
      [&](const Until& until) {
        if (!until([&] { return reports(folder.path() / "run") >= 20; })) return;
        drained = node_of(kubernetes->pods().at(0));
        const Cordon cordon(*kubernetes, drained);
        for (const auto& pod : pods_on(*kubernetes, drained)) kubernetes->evict(pod);
        if (!until([&] { return pods_on(*kubernetes, drained).empty() && !kubernetes->running().empty(); })) return;
        until([&] {
          for (const auto& pod : kubernetes->pods())
            if (pod.at("status").at("phase").as_string() == "Running") later.insert(node_of(pod));
          return false;  // to the end
        });
      });
  REQUIRE_FALSE(drained.empty());
  check_whole(results, 3, 150);
  check_none_again(results);
  CHECK_FALSE(later.empty());
  CHECK_FALSE(later.contains(drained));
  CHECK(eventually([&] { return kubernetes->is_empty(); }, 60));
}

TEST_CASE("a worker that is preempted by a pod of a higher priority: its trial saves, and goes on when there is room") {
  const auto kubernetes = test_kubernetes("preempted");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  const auto [name, cpus] = first_node(*kubernetes);
  auto setup = workers_of(*kubernetes, 1);
  setup.options.cpus = cpus * 0.7;
  setup.options.node_selector = {{"kubernetes.io/hostname", name}};
  bool preempted = false, waited = false;
  const auto results =
      run_disturbed(saves_when_told(folder.path() / "run", KubernetesExecutor(setup), 1, 100), [&](const Until& until) {
        if (!until([&] { return reports(folder.path() / "run") >= 10; })) return;
        const UrgentPod urgent(*kubernetes, name, cpus * 0.7);
        preempted = until([&] { return urgent.runs(); });
        waited = until([&] { return urgent.is_in_the_way(); });
      });
  REQUIRE(preempted);
  CHECK(waited);
  check_whole(results, 1, 100);
  check_none_again(results);
  CHECK(eventually([&] { return kubernetes->is_empty(); }, 60));
}

TEST_CASE("an owner that its user suspends: workers go, trials wait and say so, and go on when it is resumed") {
  const auto kubernetes = test_kubernetes("suspended");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  const KubernetesExecutor executor(workers_of(*kubernetes, 2));
  std::string owner;
  bool gone = false, told = false;
  int then = 0, later = 0;
  const auto suspend = [&](const char* value) {
    kubernetes->change({"apis", "batch", "v1", "namespaces", kubernetes->name_space(), "jobs", owner},
                       fmt::format(R"({{"spec": {{"suspend": {}}}}})", value));
  };
  const auto results = run_disturbed(saves_when_told(folder.path() / "run", executor, 2, 250), [&](const Until& until) {
    if (!until([&] { return reports(folder.path() / "run") >= 20; })) return;
    const auto jobs = kubernetes->get({"apis", "batch", "v1", "namespaces", kubernetes->name_space(), "jobs"});
    owner = jobs->at("items").at(0).at("metadata").at("name").as_string();
    suspend("true");
    gone = until([&] { return kubernetes->pods().empty(); });
    then = reports(folder.path() / "run");
    told = until([&] {
      const auto all = executor.accounts();
      return std::all_of(all.begin(), all.end(), [](const auto& worker) {
        return worker.reason.find("owner' is resumed, which is suspended") != std::string::npos;
      });
    });
    later = reports(folder.path() / "run");
    suspend("false");
  });
  REQUIRE(gone);
  CHECK(told);
  CHECK(later == then);
  check_whole(results, 2, 250);
  check_none_again(results);
  CHECK(eventually([&] { return kubernetes->is_empty(); }, 60));
}

TEST_CASE("a program that is not ours, or that never speaks, ends the experiment with what its pod said") {
  const auto kubernetes = test_kubernetes("mute");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  const auto complaint_of = [&](const KubernetesSetup& setup, const std::string& name) {
    try {
      run(small(folder.path() / name, KubernetesExecutor(setup), 1, 5));
    } catch (const Error& error) { return std::string(error.what()); }
    return std::string("none");
  };
  auto wrong = workers_of(*kubernetes, 1);
  wrong.options.program = "/bin/cat";
  wrong.remote.timeouts.refusals = 1;
  CHECK_THAT(complaint_of(wrong, "wrong"),
             ContainsSubstring("ended with exit code") && ContainsSubstring("unrecognized option"));
  auto mute = workers_of(*kubernetes, 1);
  mute.arguments = {"mute"};
  mute.options.save_grace = 1;
  mute.remote.timeouts.connect = 2;
  mute.remote.timeouts.refusals = 1;
  CHECK_THAT(complaint_of(mute, "mute"),
             ContainsSubstring("has not spoken") && ContainsSubstring("waits for a licence"));
  CHECK(eventually([&] { return kubernetes->is_empty(); }, 60));
}
