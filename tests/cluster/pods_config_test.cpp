// CLUSTER.yaml of machines that are pods: every key, and what is wrong with its line.
#include "support/test.hpp"

#include <hypertune/cluster/config.hpp>
#include <hypertune/cluster/detail/json.hpp>
#include <hypertune/cluster/detail/pod_config.hpp>

#include <string>

namespace hc = hypertune::cluster;

namespace {

hc::ClusterConfig read(const std::string& text) {
  return hc::cluster_from_yaml(hypertune::load_yaml_text(text, "c.yaml"), "/here");
}

std::string complaint(const std::string& text) {
  try {
    read(text);
  } catch (const hypertune::Error& error) {
    CHECK(error.code() == hypertune::Errc::input);
    return error.what();
  }
  return "none";
}

// With the keys of `provider`, and what `node` has from line 4 on.
std::string file(const std::string& provider = "", const std::string& node = "{spec: {containers: [{image: a}]}}") {
  return "cluster_name: lab\nprovider: {type: kubernetes" + provider +
         "}\navailable_node_types:\n  head: {node_config: " + node + "}\n";
}

}  // namespace

TEST_CASE("pods: what a file says") {
  const auto config = read(R"(
cluster_name: lab
provider: {type: kubernetes, namespace: team, kubeconfig: k/config, context: big, service_account: hypertune-driver}
max_workers: 4
available_node_types:
  head:
    max_workers: 0
    node_config:
      apiVersion: v1
      kind: Pod
      metadata: {generateName: ray-, labels: {a: b}}
      spec:
        restartPolicy: Never
        containers: [{name: ray-node, image: a, resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {memory: 2Gi}}}]
  gpu:
    min_workers: 2
    spot: only
    node_config:
      spec:
        containers:
        - {name: side, image: b}
        - {name: worker, image: c, resources: {limits: {cpu: 4, nvidia.com/gpu: 2}}}
  named: {resources: {CPU: 3, GPU: 1, memory: 4GiB}, node_config: {spec: {containers: [{image: a}]}}}
  plain: {node_config: {spec: {containers: [{image: a}]}}}
head_node_type: head
)");
  CHECK(config.provider.name_space == "team");
  CHECK(config.provider.kubeconfig == "/here/k/config");
  CHECK(config.provider.context == "big");
  CHECK(config.provider.service_account == "hypertune-driver");
  CHECK(config.warnings.empty());
  // What trials may use is what the file says, or else what the pod asks for.
  const auto& head = config.head();
  CHECK(head.resources_known);
  CHECK(head.resources.cpus == 0.5);
  CHECK(head.resources.memory == std::uint64_t{2} << 30U);
  const auto& gpu = *config.find_type("gpu");
  CHECK(gpu.resources.cpus == 4);
  CHECK(gpu.resources.gpus == 2);
  CHECK(gpu.spot == hc::Spot::only);
  CHECK(gpu.config_line == 19);  // of what is in it
  CHECK(config.find_type("named")->resources.cpus == 3);
  CHECK(config.find_type("plain")->resources.cpus == 1);
  CHECK(config.find_type("plain")->resources_known);
}

TEST_CASE("pods: what is wrong is named with its line and the nearest key") {
  CHECK_THAT(complaint(file(", namspace: a")),
             ContainsSubstring("c.yaml:2: unknown key 'namspace' in 'provider'") && ContainsSubstring("'namespace'"));
  CHECK_THAT(complaint(file(", host_keys: strict")), ContainsSubstring("unknown key 'host_keys'"));
  CHECK_THAT(complaint(file(", namespace: My_Lab")),
             ContainsSubstring("c.yaml:2: 'provider.namespace' is 'My_Lab', which is not a valid Kubernetes name"));
  CHECK_THAT(complaint(file(", service_account: a b")), ContainsSubstring("'provider.service_account' is 'a b'"));
  CHECK_THAT(complaint("cluster_name: lab-\nprovider: {type: kubernetes}\n"),
             ContainsSubstring("c.yaml:1") && ContainsSubstring("begin and end with a letter or a digit"));
  CHECK_THAT(complaint("cluster_name: lab\nprovider: {type: kubernetes}\n"),
             ContainsSubstring("pods need 'available_node_types'"));
  CHECK_THAT(complaint("cluster_name: lab\nprovider: {type: kubernetess}\n"), ContainsSubstring("'kubernetes'"));
  const auto node = [](const std::string& config) { return complaint(file("", config)); };
  CHECK_THAT(complaint("cluster_name: lab\nprovider: {type: kubernetes}\navailable_node_types:\n  head: {}\n"),
             ContainsSubstring("c.yaml:4: 'available_node_types.head' needs a 'node_config', which is a pod"));
  CHECK_THAT(complaint("cluster_name: l\nprovider: {type: kubernetes}\navailable_node_types:\n"
                       "  a b: {node_config: {spec: {containers: [{image: a}]}}}\n"),
             ContainsSubstring("is a label's value"));
  CHECK_THAT(node("{specs: {}}"), ContainsSubstring("c.yaml:4: unknown key 'specs'") && ContainsSubstring("'spec'"));
  CHECK_THAT(node("{kind: Deployment, spec: {}}"), ContainsSubstring("must be Pod, not 'Deployment'"));
  CHECK_THAT(node("{metadata: {}}"), ContainsSubstring("has no 'spec'"));
  CHECK_THAT(node("{spec: {}}"), ContainsSubstring("needs a list of containers"));
  CHECK_THAT(node("{spec: {containers: []}}"), ContainsSubstring("needs a list of containers"));
  CHECK_THAT(node("{spec: {containers: [a]}}"), ContainsSubstring("must be a container"));
  CHECK_THAT(node("{spec: {containers: [{name: a}]}}"), ContainsSubstring("has no 'image'"));
  CHECK_THAT(node("{spec: {containers: [{imag: a}]}}"),
             ContainsSubstring("unknown key 'imag'") && ContainsSubstring("'image'"));
  CHECK_THAT(node("{spec: {toleration: [], containers: [{image: a}]}}"),
             ContainsSubstring("unknown key 'toleration'") && ContainsSubstring("'tolerations'"));
  CHECK_THAT(node("{spec: {containers: [{image: a, resources: {limits: {cpu: many}}}]}}"),
             ContainsSubstring("must be a quantity like 500m, 2 or 4Gi, not 'many'"));
  // A key that is near to none may be one of a newer Kubernetes, which says so itself.
  CHECK(node("{spec: {xyzzyPlugh: 1, containers: [{image: a}]}}") == "none");
}

TEST_CASE("pods: what Ray's launcher knows and this does not is one warning") {
  const auto config =
      read(file(", use_internal_ips: true, services: [{a: b}], autoscaler_role: {a: b}") + "auth: {ssh_user: ray}\n");
  REQUIRE(config.warnings.size() == 1);
  CHECK_THAT(config.warnings.front(), ContainsSubstring("provider.services") &&
                                          ContainsSubstring("provider.autoscaler_role") &&
                                          ContainsSubstring("auth.ssh_user"));
}

TEST_CASE("pods: quantities of Kubernetes") {
  const auto quantity = [](const std::string& text) {
    return hc::detail::quantity_of(hypertune::load_yaml_text("a: " + text, "q.yaml")["a"]);
  };
  CHECK(quantity("2") == 2);
  CHECK(quantity("500m") == 0.5);
  CHECK(quantity("1.5Gi") == 1.5 * 0x1p30);
  CHECK(quantity("1e3") == 1000);
  CHECK(quantity("2k") == 2000);
  for (const char* wrong : {"''", "m", "-1", "1x", "nan", "inf", "1 Gi"})
    CHECK_THROWS_AS(quantity(wrong), hypertune::Error);
}
