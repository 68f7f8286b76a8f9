// Pods of a fleet on a real Kubernetes: made, watched, replaced, taken along by their owner.
#include "k8s/support/test_kubernetes.hpp"
#include "owner_job.hpp"
#include "pod_fleet.hpp"
#include "preflight.hpp"

#include <hypertune/config/pod_capacity.hpp>
#include <hypertune/detail/run_clock.hpp>

#include <algorithm>
#include <atomic>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;
using k8s::PodFleet;
using k8s::PodState;

namespace {

k8s::FleetPlan plan(const std::string& name) {
  return {.name = name, .experiment = name, .command = {"/bin/test_worker", "--hypertune-pod", "host"}};
}
std::shared_ptr<remote::Notices> quiet() {
  return std::make_shared<remote::Notices>([](const std::string&) {});
}

}  // namespace

TEST_CASE("a worker's pod is made once, used again, and replaced when it is taken away") {
  const auto kubernetes = test_kubernetes("fleet");
  if (!kubernetes) return;
  PodFleet fleet(kubernetes->client(), pods_of(*kubernetes), plan("fleet-a"), quiet());
  const auto first = fleet.acquire("worker-1", {});
  CHECK(first.phase == PodState::Phase::running);
  CHECK_FALSE(first.node.empty());
  CHECK(fleet.acquire("worker-1", {}).name == first.name);

  // Another driver of the same experiment takes it up.
  {
    PodFleet other(kubernetes->client(), pods_of(*kubernetes), plan("fleet-a"), quiet());
    CHECK(other.acquire("worker-1", {}).name == first.name);
    auto changed = pods_of(*kubernetes);
    changed.cpus = 0.2;
    PodFleet unlike(kubernetes->client(), changed, plan("fleet-a"), quiet());
    CHECK(unlike.acquire("worker-1", {}).name != first.name);
  }
  kubernetes->remove_pod(first.name);
  REQUIRE(eventually([&] {
    const auto state = fleet.acquire("worker-1", {});
    return state.name != first.name;
  }));
  fleet.release("worker-1");
  fleet.reconcile({});
  fleet.finish();
  CHECK(eventually([&] { return kubernetes->is_empty(); }, 60));
}

TEST_CASE("where there is no other node, the one that was avoided is used again, for each worker") {
  const auto kubernetes = test_kubernetes("fleet-avoids");
  if (!kubernetes) return;
  auto options = pods_of(*kubernetes);
  options.node_selector = {{"kubernetes.io/hostname", first_node(*kubernetes).name}};
  PodFleet fleet(kubernetes->client(), options, plan("fleet-d"), quiet());
  const auto first = fleet.acquire("worker-1", {});
  fleet.discard(first.name, true);
  // Both pods are made while the only node is avoided; one of them learns first that this helps nobody.
  std::stop_source stop;
  std::vector<std::string> failures(2);
  std::vector<PodState> found(2);
  std::vector<std::thread> threads;
  std::atomic<int> done{0};
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      const auto at = static_cast<std::size_t>(i);
      try {
        found[at] = fleet.acquire("worker-" + std::to_string(i + 1), stop.get_token());
      } catch (const std::exception& error) { failures[at] = error.what(); }
      ++done;
    });
  CHECK(eventually(
      [&] {
        fleet.reconcile({});
        return done == 2;
      },
      60));
  stop.request_stop();
  for (auto& thread : threads) thread.join();
  CHECK(failures == std::vector<std::string>(2));
  for (const auto& pod : found) CHECK(pod.node == first.node);
  fleet.finish();
  CHECK(eventually([&] { return kubernetes->is_empty(); }, 60));
}

TEST_CASE("what keeps a pod from running is said, and what will never be is told apart") {
  const auto kubernetes = test_kubernetes("fleet-waits");
  if (!kubernetes) return;
  const auto wait_for = [&](KubernetesOptions options, const std::string& name) {
    PodFleet fleet(kubernetes->client(), std::move(options), plan(name), quiet());
    std::stop_source stop;
    std::string failure, sentence;
    std::thread waiting([&] {
      try {
        fleet.acquire("worker-1", stop.get_token());
      } catch (const remote::DialError& error) { failure = error.what(); }
    });
    eventually([&] {
      const auto all = fleet.waiting();
      if (!all.empty()) sentence = all.front().sentence;
      return sentence.find("waits for a node") != std::string::npos || sentence.find("quota") != std::string::npos ||
             (all.empty() && !sentence.empty());
    });
    stop.request_stop();
    waiting.join();
    fleet.finish();
    return sentence + " | " + failure;
  };
  auto large = pods_of(*kubernetes);
  large.cpus = 1000;
  CHECK_THAT(wait_for(large, "large"), ContainsSubstring("Insufficient cpu"));
  auto image = pods_of(*kubernetes);
  image.image = "hypertune.test/nothing:1";
  CHECK_THAT(wait_for(image, "image"), ContainsSubstring("image"));
  auto selector = pods_of(*kubernetes);
  selector.node_selector = {{"zone", "nowhere"}};
  CHECK_THAT(wait_for(selector, "selector"), ContainsSubstring("didn't match Pod's node affinity/selector"));
  auto wrong = pods_of(*kubernetes);
  wrong.pod = "spec: {containers: [{name: worker, imagePullPolicy: Sometimes}]}";
  CHECK_THAT(wait_for(wrong, "wrong"), ContainsSubstring("imagePullPolicy"));
  kubernetes->create({"api", "v1", "namespaces", kubernetes->name_space(), "resourcequotas"},
                     boost::json::parse(R"({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"},
                                            "spec": {"hard": {"pods": "0"}}})")
                         .as_object());
  REQUIRE(eventually([&] {
    const auto quota = kubernetes->get({"api", "v1", "namespaces", kubernetes->name_space(), "resourcequotas", "none"});
    return quota->at("status").as_object().contains("hard");
  }));
  CHECK_THAT(wait_for(pods_of(*kubernetes), "quota"), ContainsSubstring("waits for quota"));
}

TEST_CASE("an owner takes its pods along when its driver does not keep it alive") {
  const auto kubernetes = test_kubernetes("owner");
  if (!kubernetes) return;
  {
    PodFleet fleet(kubernetes->client(), pods_of(*kubernetes), plan("owned"), quiet());
    fleet.acquire("worker-1", {});
    k8s::OwnerJob owner(kubernetes->client(), "owned-owner", "owned", "none");
    owner.make();  // it is there: taken up
    REQUIRE(owner.owner());
    const auto job = *kubernetes->get({"apis", "batch", "v1", "namespaces", "owner", "jobs", "owned-owner"});
    CHECK(job.at("metadata").at("uid").as_string() == std::string_view(owner.owner()->uid));
    const auto before = job.at("spec").at("activeDeadlineSeconds").as_int64();
    CHECK(owner.keep(hypertune::detail::steady_seconds()));
    const auto after = kubernetes->get({"apis", "batch", "v1", "namespaces", "owner", "jobs", "owned-owner"});
    CHECK(after->at("spec").at("activeDeadlineSeconds").as_int64() >= before + 300);
    // As when a driver was killed: nobody moves the deadline on, and here it comes at once.
    auto client = kubernetes->client();
    client.call({.method = k8s::Method::patch,
                 .path = k8s::api_path({"apis", "batch", "v1", "namespaces", "owner", "jobs", "owned-owner"}),
                 .body = R"({"spec": {"activeDeadlineSeconds": 1}})",
                 .type = k8s::Body::merge_patch});
    CHECK(eventually([&] { return kubernetes->is_empty(); }, 60));
    CHECK_FALSE(owner.keep(hypertune::detail::steady_seconds() + 100));
  }
}

TEST_CASE("the owner of a driver that was killed goes with the next one's end, which made no pod") {
  const auto kubernetes = test_kubernetes("left");
  if (!kubernetes) return;
  {
    PodFleet killed(kubernetes->client(), pods_of(*kubernetes), plan("left"), quiet());
    killed.acquire("worker-1", {});
  }
  const std::initializer_list<std::string_view> owner{"apis", "batch", "v1",        "namespaces",
                                                      "left", "jobs",  "left-owner"};
  REQUIRE(kubernetes->exists(owner));
  PodFleet next(kubernetes->client(), pods_of(*kubernetes), plan("left"), quiet());
  next.finish();
  CHECK(eventually([&] { return !kubernetes->exists(owner) && kubernetes->is_empty(); }, 60));
}

TEST_CASE("GPUs of a DeviceClass are claimed, as many as a worker gets, and no claim is left") {
  const auto kubernetes = test_kubernetes("claims");
  if (!kubernetes) return;
  constexpr const char *driver = "gpu.hypertune.test", *slice = "hypertune-test-gpus";
  const std::string node = first_node(*kubernetes).name;
  const auto object = [](const std::string& text) { return boost::json::parse(text).as_object(); };
  struct Devices {  // belong to no namespace
    const TestKubernetes& kubernetes;
    ~Devices() {
      try {
        kubernetes.remove({"apis", "resource.k8s.io", "v1", "deviceclasses", "gpu.hypertune.test"});
        kubernetes.remove({"apis", "resource.k8s.io", "v1", "resourceslices", "hypertune-test-gpus"});
      } catch (const std::exception& error) { WARN(error.what()); }
    }
  } const devices{*kubernetes};
  kubernetes->create({"apis", "resource.k8s.io", "v1", "deviceclasses"}, object(fmt::format(R"(
      {{"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {{"name": "{0}"}},
        "spec": {{"selectors": [{{"cel": {{"expression": "device.driver == '{0}'"}}}}]}}}})",
                                                                                            driver)));
  kubernetes->create({"apis", "resource.k8s.io", "v1", "resourceslices"}, object(fmt::format(R"(
      {{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {{"name": "{}"}},
        "spec": {{"driver": "{}", "nodeName": "{}", "pool": {{"name": "p", "generation": 1, "resourceSliceCount": 1}},
                  "devices": [{{"name": "a"}}, {{"name": "b"}}, {{"name": "c"}}]}}}})",
                                                                                             slice, driver, node)));
  const auto of = [&](const char* kind) {
    return kubernetes->get({"apis", "resource.k8s.io", "v1", "namespaces", kubernetes->name_space(), kind})
        ->at("items")
        .as_array();
  };
  auto options = pods_of(*kubernetes);
  options.gpus = 2;
  options.gpu_class = driver;
  PodFleet fleet(kubernetes->client(), options, plan("claims-a"), quiet());
  // Without the driver's plugin on the node no such pod starts; where it is placed, and with which devices, is known.
  std::stop_source stop;
  std::vector<std::thread> threads;
  for (const char* worker : {"worker-1", "worker-2"})
    threads.emplace_back([&, worker] {
      try {
        fleet.acquire(worker, stop.get_token());
      } catch (const remote::DialError&) {}
    });
  std::string waits;
  CHECK(eventually([&] {
    waits.clear();
    for (const auto& each : fleet.waiting()) waits += each.sentence + "\n";
    return waits.find("is being started on node " + node) != std::string::npos &&
           waits.find("waits for a node") != std::string::npos;
  }));
  CHECK_THAT(waits, ContainsSubstring("cannot allocate all claims"));
  std::vector<std::size_t> allocated;
  for (const auto& claim : of("resourceclaims"))
    if (const auto* allocation = claim.at("status").as_object().if_contains("allocation"))
      allocated.push_back(allocation->at("devices").at("results").as_array().size());
  CHECK(allocated == std::vector<std::size_t>{2});
  for (const auto& pod : kubernetes->pods()) {
    const auto resources = boost::json::serialize(pod.at("spec").at("containers").at(0).at("resources"));
    CHECK_THAT(resources, ContainsSubstring("claims") && !ContainsSubstring("nvidia.com/gpu"));
  }
  stop.request_stop();
  for (auto& thread : threads) thread.join();
  fleet.finish();
  CHECK(eventually(
      [&] { return kubernetes->is_empty() && of("resourceclaims").empty() && of("resourceclaimtemplates").empty(); },
      60));
}

TEST_CASE("a pod's own resources are a worker's, without a request of the container") {
  const auto kubernetes = test_kubernetes("pod-level");
  if (!kubernetes) return;
  auto options = pods_of(*kubernetes);
  options.cpus = {};
  options.save_grace = 1;  // the container beside ours does not heed the notice
  options.pod =
      "spec: {resources: {requests: {cpu: 300m}, limits: {memory: 200Mi}}, dnsPolicy: Default, containers: "
      "[{name: worker, imagePullPolicy: Never}, {name: side, image: 'hypertune.test/agent:1', imagePullPolicy: Never, "
      "command: [sleep, '1000']}]}";
  CHECK(capacity_of(options).cpus == 0.3);
  CHECK(capacity_of(options).memory == 200U << 20U);
  PodFleet fleet(kubernetes->client(), options, plan("level"), quiet());
  fleet.acquire("worker-1", {});
  const auto pods = kubernetes->pods();
  REQUIRE(pods.size() == 1);
  CHECK(boost::json::serialize(pods.front().at("spec").at("containers").at(0).at("resources")) == "{}");
  CHECK(pods.front().at("spec").at("resources").at("requests").at("cpu").as_string() == "300m");
  fleet.release("worker-1");
  fleet.finish();
  CHECK(eventually([&] { return kubernetes->is_empty(); }, 60));
}

TEST_CASE("what an account may not do is named, with the rule that allows it") {
  const auto kubernetes = test_kubernetes("preflight");
  if (!kubernetes) return;
  const std::vector<k8s::Permission> needed{{"", "pods", "create", "to start workers"},
                                            {"", "pods", "get", "to look at them"},
                                            {"", "pods/exec", "create", "to reach their agents"}};
  CHECK(k8s::missing_permissions(kubernetes->client(), needed).empty());
  auto nobody = k8s::load_access({.kubeconfig = {TestKubernetes::kubeconfig()}, .name_space = "preflight"});
  nobody.headers = {{"Impersonate-User", "system:serviceaccount:preflight:default"}};
  const k8s::Client client(nobody);
  CHECK(k8s::missing_permissions(client, needed) == needed);
  try {
    k8s::require_permissions(client, needed);
    FAIL("nothing was refused");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::usage);
    CHECK_THAT(error.what(), ContainsSubstring("create pods (to start workers)"));
    CHECK_THAT(error.what(),
               ContainsSubstring(R"(its Role: [{apiGroups: [""], resources: [pods], verbs: [create, get]}, {)"));
    CHECK_THAT(error.what(), ContainsSubstring(R"(resources: [pods/exec], verbs: [create]}])"));
    CHECK(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
}
