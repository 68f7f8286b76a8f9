// Manifests of workers' pods.
#include "pod_manifest.hpp"

#include "driver_manifest.hpp"
#include "pod_state.hpp"
#include "support/test.hpp"

#include <hypertune/config/sweep.hpp>
#include <hypertune/k8s/driver_job.hpp>
#include <hypertune/k8s/executor.hpp>

#include <boost/json.hpp>

#include <algorithm>
#include <string>
#include <utility>

using namespace hypertune;
namespace json = boost::json;

namespace {

k8s::PodPlan plan() {
  return {.name = "digits-1-ab",
          .experiment = "digits-77",
          .worker = "worker-1",
          .command = {"/app/train", "--hypertune-pod", "host"}};
}

const json::value& at(const json::value& value, const std::string& pointer) { return value.at_pointer(pointer); }

bool tolerates(const json::value& pod, const std::string& key) {
  const auto& all = at(pod, "/spec/tolerations").as_array();
  return std::any_of(all.begin(), all.end(),
                     [&](const auto& each) { return each.at("key").as_string() == std::string_view(key); });
}

}  // namespace

TEST_CASE("a worker's pod has what a worker needs") {
  const json::value pod =
      k8s::pod_manifest({.image = "lab/train:7", .cpus = 1.5, .memory = 1 << 20, .gpus = 2}, plan());
  CHECK(at(pod, "/kind").as_string() == "Pod");
  CHECK(at(pod, "/metadata/name").as_string() == "digits-1-ab");
  CHECK(at(pod, "/metadata/labels/hypertune~1experiment").as_string() == "digits-77");
  CHECK(at(pod, "/metadata/labels/hypertune~1worker").as_string() == "worker-1");
  CHECK(at(pod, "/spec/restartPolicy").as_string() == "Never");
  CHECK(at(pod, "/spec/terminationGracePeriodSeconds").as_int64() == 60);
  CHECK_FALSE(at(pod, "/spec/automountServiceAccountToken").as_bool());
  const auto& container = at(pod, "/spec/containers/0");
  CHECK(at(container, "/name").as_string() == "worker");
  CHECK(at(container, "/image").as_string() == "lab/train:7");
  CHECK(at(container, "/command/1").as_string() == "--hypertune-pod");
  CHECK(at(container, "/resources/requests/cpu").as_string() == "1500m");
  CHECK(at(container, "/resources/requests/memory").as_string() == "1048576");
  CHECK(at(container, "/resources/limits/memory").as_string() == "1048576");
  CHECK(at(container, "/resources/limits/nvidia.com~1gpu").as_string() == "2");
  CHECK_FALSE(at(container, "/resources/limits").as_object().contains("cpu"));
  CHECK(at(container, "/volumeMounts/0/mountPath").as_string() == "/hypertune");
  const auto& variables = at(container, "/env").as_array();
  CHECK(std::any_of(variables.begin(), variables.end(), [](const auto& each) {
    return each.at("name").as_string() == "HYPERTUNE_GROUP_ADDRESS" &&
           each.at_pointer("/valueFrom/fieldRef/fieldPath").as_string() == "status.podIP";
  }));
  CHECK(tolerates(pod, "node.kubernetes.io/unreachable"));
  CHECK_FALSE(at(pod, "/spec").as_object().contains("affinity"));
  CHECK_FALSE(at(pod, "/metadata").as_object().contains("ownerReferences"));
}

TEST_CASE("where cpus are left out, the container asks only for what its pod does not") {
  const auto resources = [](const std::string& pod, std::optional<double> cpus = {}) {
    KubernetesOptions options{.image = "b", .cpus = cpus};
    options.pod = pod;
    const json::value made = k8s::pod_manifest(options, plan());
    const auto* all = at(made, "/spec/containers/0").as_object().if_contains("resources");
    return all == nullptr ? std::string() : json::serialize(*all);
  };
  CHECK(resources("") == R"({"requests":{"cpu":"1"}})");
  CHECK(resources("spec: {resources: {requests: {cpu: 2}}}").empty());
  CHECK(resources("spec: {resources: {requests: {memory: 1Gi}}}") == R"({"requests":{"cpu":"1"}})");
  CHECK(resources("spec: {resources: {requests: {cpu: 2}}}", 0.5) == R"({"requests":{"cpu":"500m"}})");
  CHECK(resources("spec: {containers: [{name: x, resources: {limits: {cpu: 2}}}]}") == R"({"limits":{"cpu":2}})");
}

TEST_CASE("GPUs of a class are claimed, and a pod names the group that it is placed with") {
  auto with = plan();
  with.claim_template = "digits-gpus";
  with.group = "digits-group-1";
  const json::value pod = k8s::pod_manifest({.image = "b", .cpus = 1, .gpus = 2, .gpu_class = "gpu.example.org"}, with);
  CHECK(json::serialize(at(pod, "/spec/resourceClaims")) ==
        R"([{"name":"hypertune-gpus","resourceClaimTemplateName":"digits-gpus"}])");
  CHECK(json::serialize(at(pod, "/spec/containers/0/resources")) ==
        R"({"requests":{"cpu":"1"},"claims":[{"name":"hypertune-gpus"}]})");
  CHECK(at(pod, "/spec/schedulingGroup/podGroupName").as_string() == "digits-group-1");
}

TEST_CASE("a pod in Kubernetes' own words stays as it was written, but for what makes it a worker") {
  KubernetesOptions options{.image = "b", .cpus = 2, .service_account = "ours"};
  options.pod = R"(
metadata: {labels: {team: x, hypertune/role: mine}, annotations: {a: "1"}}
spec:
  serviceAccountName: theirs
  restartPolicy: Always
  terminationGracePeriodSeconds: 7
  volumes: [{name: data, persistentVolumeClaim: {claimName: set}}]
  tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 300}]
  containers:
  - {name: helper, image: h}
  - name: worker
    command: [sleep]
    args: [forever]
    resources: {requests: {cpu: 500m}, limits: {cpu: "1"}}
    env: [{name: XDG_CACHE_HOME, value: /elsewhere}]
    volumeMounts: [{name: data, mountPath: /data}]
)";
  const json::value pod = k8s::pod_manifest(options, plan());
  CHECK(at(pod, "/metadata/labels/team").as_string() == "x");
  CHECK(at(pod, "/metadata/labels/hypertune~1role").as_string() == "worker");
  CHECK(at(pod, "/metadata/annotations/a").as_string() == "1");
  CHECK(at(pod, "/spec/serviceAccountName").as_string() == "theirs");
  CHECK(at(pod, "/spec/restartPolicy").as_string() == "Never");
  CHECK(at(pod, "/spec/terminationGracePeriodSeconds").as_int64() == 7);
  CHECK(at(pod, "/spec/containers/0/image").as_string() == "h");
  CHECK_FALSE(at(pod, "/spec/containers/0").as_object().contains("resources"));
  const auto& container = at(pod, "/spec/containers/1");
  CHECK(at(container, "/image").as_string() == "b");
  CHECK(at(container, "/command").as_array().size() == 3);
  CHECK_FALSE(container.as_object().contains("args"));
  CHECK(at(container, "/resources/requests/cpu").as_string() == "500m");
  CHECK(at(container, "/resources/limits/cpu").as_string() == "1");
  CHECK(at(container, "/env/0/value").as_string() == "/elsewhere");
  const auto& env = at(container, "/env").as_array();
  CHECK(std::count_if(env.begin(), env.end(),
                      [](const auto& e) { return e.at("name").as_string() == "XDG_CACHE_HOME"; }) == 1);
  CHECK(at(container, "/volumeMounts").as_array().size() == 2);
  CHECK(at(pod, "/spec/volumes/0/name").as_string() == "data");
  const auto& tolerations = at(pod, "/spec/tolerations").as_array();
  CHECK(tolerations.size() == 2);  // that of the template, and not-ready
  CHECK(tolerations[0].at("tolerationSeconds").as_int64() == 300);
  CHECK(k8s::container_of(options) == "worker");
  CHECK(k8s::container_of({.image = "a", .pod = "spec: {containers: [{name: main}]}"}) == "main");
  CHECK(k8s::container_of({.image = "a"}) == "worker");
}

TEST_CASE("what is no pod is refused in one line") {
  const auto complaint = [](const std::string& pod, std::string image = "a") {
    try {
      k8s::pod_manifest({.image = std::move(image), .pod = pod}, plan());
    } catch (const Error& error) { return std::string(error.what()); }
    return std::string();
  };
  CHECK_THAT(complaint("spec: 3"), ContainsSubstring("'spec' must be a map"));
  CHECK_THAT(complaint("spec: {containers: {}}"), ContainsSubstring("'spec.containers' must be a list"));
  CHECK_THAT(complaint("spec: {containers: [3]}"), ContainsSubstring("list of containers"));
  CHECK_THAT(complaint("[1]"), ContainsSubstring("must be a pod"));
  CHECK_THAT(complaint("speck: {}"), ContainsSubstring("executor.pod:1: unknown key 'speck'"));
  CHECK_THAT(complaint("spec: {}", ""), ContainsSubstring("has no image"));
}

TEST_CASE("a pod that is given as text is judged before the run, as that of a file is") {
  const auto complaint = [](const auto& make) {
    try {
      make();
    } catch (const Error& error) { return std::string(error.what()); }
    return std::string();
  };
  const auto in_file = [&](const std::string& pod) {
    return complaint([&] {
      sweep_from_yaml(load_yaml_text("trial: {command: [./train]}\nspace: {x: {uniform: [0, 1]}}\nmetric: loss\nmode: "
                                     "min\nsamples: 3\nexecutor: {type: kubernetes, image: a, pod: " +
                                         pod + "}\n",
                                     "s.yaml"),
                      false);
    });
  };
  const std::pair<std::string, std::string> cases[] = {
      {"{spec: {tolerationz: []}}", "did you mean 'tolerations'?"},
      {"{spec: {containers: [{name: worker, imagepullpolicy: Never}]}}", "did you mean 'imagePullPolicy'?"},
      {"{speck: {}}", "unknown key 'speck'"},
      {"{spec: 3}", "must be a map, not '3'"},
      {"{metadata: [a]}", "must be a map, not a list"},
      {"{spec: {containers: {}}}", "must be a list of containers, not a map"},
      {"{spec: {containers: [3]}}", "must be a list of containers (maps with 'name'), and has '3'"},
      {"[1]", "must be a pod"}};
  for (const auto& [pod, problem] : cases) {
    CAPTURE(pod);
    CHECK_THAT(in_file(pod), ContainsSubstring(problem));
    const KubernetesOptions options{.image = "a", .pod = pod};
    CHECK_THAT(complaint([&] { KubernetesExecutor({.options = options}); }),
               ContainsSubstring("executor.pod:1: ") && ContainsSubstring(problem));
    CHECK_THAT(complaint([&] { k8s::DriverJob({.workers = options, .name = "job"}); }), ContainsSubstring(problem));
  }
  CHECK(complaint([] { KubernetesExecutor({.options = {.image = "a", .pod = "spec: {newerThanThis: 1}"}}); }).empty());
  CHECK_THAT(complaint([] { KubernetesExecutor({.options = {.pod = "spec: {}"}}); }),
             ContainsSubstring("executor.pod: the container 'worker' has no image"));
}

TEST_CASE("spot nodes: any one label will do, beside what the template asks for") {
  using Spot = KubernetesOptions::Spot;
  const auto make = [](Spot spot, std::string pod = {}) {
    return json::value(k8s::pod_manifest({.image = "a", .spot = spot, .pod = std::move(pod)}, plan()));
  };
  const auto terms = [](const json::value& pod) {
    return at(pod, "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms")
        .as_array();
  };
  const auto only = make(Spot::only);
  CHECK(terms(only).size() >= 4);
  CHECK(tolerates(only, "cloud.google.com/gke-spot"));
  const std::string zone =
      "spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
      "[{matchExpressions: [{key: zone, operator: In, values: [a]}]}]}}}}";
  for (const auto& term : terms(make(Spot::only, zone))) {
    CHECK(at(term, "/matchExpressions/0/key").as_string() == "zone");
    CHECK(at(term, "/matchExpressions").as_array().size() == 2);
  }
  const auto never = make(Spot::never, zone);
  REQUIRE(terms(never).size() == 1);
  CHECK(at(terms(never)[0], "/matchExpressions/1/operator").as_string() == "NotIn");
  CHECK_FALSE(tolerates(never, "cloud.google.com/gke-spot"));
  const auto prefer = make(Spot::prefer);
  CHECK_FALSE(
      at(prefer, "/spec/affinity/nodeAffinity").as_object().contains("requiredDuringSchedulingIgnoredDuringExecution"));
  CHECK(tolerates(prefer, "cloud.google.com/gke-spot"));
}

TEST_CASE("a new pod avoids the nodes where others have been lost, and its owner takes it along") {
  auto with = plan();
  with.avoid_nodes = {"n1", "n2"};
  with.owner = k8s::Owner{"batch/v1", "Job", "anchor", "u-1"};
  with.driver = "wss://10.0.0.1:7 sha256:ab";
  with.secret = "digits-token";
  const json::value pod = k8s::pod_manifest({.image = "a", .queue = "team"}, with);
  const auto& fields =
      at(pod,
         "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields")
          .as_array();
  REQUIRE(fields.size() == 2);
  for (const auto& field : fields) {
    CHECK(field.at("key").as_string() == "metadata.name");
    CHECK(field.at("values").as_array().size() == 1);
  }
  CHECK(at(pod, "/metadata/ownerReferences/0/uid").as_string() == "u-1");
  CHECK(at(pod, "/metadata/annotations/hypertune~1driver").as_string() == with.driver);
  CHECK(at(pod, "/metadata/annotations/hypertune~1avoids").as_string() == "n1 n2");
  CHECK(k8s::pod_state(pod.as_object(), "worker").avoids);
  with.avoid_nodes.clear();
  CHECK_FALSE(k8s::pod_state(k8s::pod_manifest({.image = "a"}, with), "worker").avoids);
  CHECK(at(pod, "/metadata/labels/kueue.x-k8s.io~1queue-name").as_string() == "team");
  const auto text = json::serialize(pod);
  CHECK_THAT(text, ContainsSubstring(R"("secretKeyRef":{"name":"digits-token","key":"token"})"));
  CHECK_THAT(text, ContainsSubstring("metadata.annotations['hypertune/driver']"));
}

TEST_CASE("any text makes a name for Kubernetes") {
  CHECK(k8s::kubernetes_name("My sweep!") == "my-sweep");
  CHECK(k8s::kubernetes_name("7 layers") == "h7-layers");
  CHECK(k8s::kubernetes_name("...") == "h");
  CHECK(k8s::kubernetes_name("a_b//c") == "a-b-c");
  CHECK(k8s::kubernetes_name("Größe") == "gr-e");
  CHECK(k8s::kubernetes_name(std::string(100, 'x')).size() == 40);
  CHECK(k8s::kubernetes_name("abc-def", 4) == "abc");
}

TEST_CASE("the volume for checkpoints is where the options say, in workers and in a driver's pod") {
  KubernetesOptions options{.image = "a", .volume = "weights"};
  const auto worker = [&] { return json::value(k8s::pod_manifest(options, plan())); };
  const auto driver = [&](const std::string& record) {
    const k8s::DriverJobOptions job{.workers = options};
    return json::value(k8s::driver_job_manifest(job, "job", record, "first")).at_pointer("/spec/template");
  };
  CHECK(at(worker(), "/spec/volumes/1/persistentVolumeClaim/claimName").as_string() == "weights");
  CHECK(at(worker(), "/spec/containers/0/volumeMounts/1/mountPath").as_string() == "/hypertune-checkpoints");
  CHECK(at(driver("record"), "/spec/volumes/1/persistentVolumeClaim/claimName").as_string() == "weights");
  CHECK(at(driver("record"), "/spec/containers/0/volumeMounts/1/mountPath").as_string() == "/hypertune-checkpoints");
  // One that has the record as well is a volume of the pod once.
  CHECK(at(driver("weights"), "/spec/volumes").as_array().size() == 1);
  CHECK(at(driver("weights"), "/spec/containers/0/volumeMounts").as_array().size() == 2);
  CHECK(at(driver("weights"), "/spec/containers/0/volumeMounts/1/name") ==
        at(driver("weights"), "/spec/volumes/0/name"));
  options.transfer.shared = {.folder = "/nfs/weights", .on_hosts = "/mnt/weights"};
  CHECK(at(worker(), "/spec/containers/0/volumeMounts/1/mountPath").as_string() == "/mnt/weights");
  CHECK(at(driver("record"), "/spec/containers/0/volumeMounts/1/mountPath").as_string() == "/nfs/weights");
}
