// executor: {type: kubernetes, …}
#include "executor_sweeps.hpp"
#include "support/test.hpp"

#include <hypertune/config/pod_capacity.hpp>

#include <cstdint>
#include <string>

using namespace hypertune;
using executor_sweeps::complaint;
using executor_sweeps::read;

TEST_CASE("the kubernetes executor: every key") {
  const auto pods =
      *read(
           "executor: {type: kubernetes, pool: 2..32, image: 'lab/train:7', namespace: lab, "
           "kubeconfig: ~/k, context: test, cpus: 0.5, memory: 8GiB, max_memory: 16GiB, gpus: 2, gpu_resource: "
           "amd.com/gpu, gpu_class: "
           "gpu.amd.com, "
           "node_selector: {zone: a, big: true}, spot: prefer, priority_class: low, service_account: me, "
           "image_pull_secrets: [mine], queue: team, connection: exec, program: /app/train, workdir: /data, "
           "save_grace: 2m, reuse: false, idle_timeout: 5m, group_timeout: 3m, heartbeat_timeout: 20s, file_mounts: "
           "{a.py: a.py}, "
           "volume: weights, transfer: {rate_limit: 5MB, shared: {folder: /nfs/weights}}, "
           "pod: {metadata: {labels: {team: x}}, spec: {hostNetwork: true, containers: "
           "[{name: worker, env: [{name: A, value: '1'}]}]}}}\n")
           .executor.kubernetes;
  CHECK(pods.pool == PoolSize{2, 32});
  CHECK(pods.image == "lab/train:7");
  CHECK(pods.name_space == "lab");
  CHECK(pods.kubeconfig == "~/k");
  CHECK(pods.context == "test");
  CHECK(pods.cpus == 0.5);
  CHECK(pods.memory == std::uint64_t{8} << 30U);
  CHECK(pods.max_memory == std::uint64_t{16} << 30U);
  CHECK(pods.gpus == 2);
  CHECK(pods.gpu_resource == "amd.com/gpu");
  CHECK(pods.gpu_class == "gpu.amd.com");
  CHECK(pods.node_selector == std::map<std::string, std::string>{{"zone", "a"}, {"big", "true"}});
  CHECK(pods.spot == KubernetesOptions::Spot::prefer);
  CHECK(pods.priority_class == "low");
  CHECK(pods.service_account == "me");
  CHECK(pods.image_pull_secrets == std::vector<std::string>{"mine"});
  CHECK(pods.queue == "team");
  CHECK(pods.connection == KubernetesOptions::Connection::exec);
  CHECK(pods.program == "/app/train");
  CHECK(pods.workdir == "/data");
  CHECK(pods.save_grace == 120);
  CHECK_FALSE(pods.reuse);
  CHECK(pods.group_timeout == 180);
  CHECK(pods.idle_timeout == 300);
  CHECK(pods.heartbeat_timeout == 20);
  REQUIRE(pods.file_mounts.size() == 1);
  CHECK(pods.file_mounts.front().local == "a.py");
  CHECK(pods.volume == "weights");
  CHECK(pods.transfer.rate_limit == 5'000'000);
  REQUIRE(pods.transfer.shared);
  CHECK(pods.transfer.shared->folder == "/nfs/weights");
  CHECK(pods.pod == R"({"metadata": {"labels": {"team": "x"}}, "spec": {"hostNetwork": true, "containers": )"
                    R"([{"name": "worker", "env": [{"name": "A", "value": "1"}]}]}})");
}

TEST_CASE("a trial has its pod for itself, unless it says what it takes") {
  const auto whole = read("executor: {type: kubernetes, image: a, cpus: 4, gpus: 2}\n").options.resources;
  CHECK(whole.cpus == 4);
  CHECK(whole.gpus == 2);
  const auto part = read("resources: {cpus: 2, gpus: 1}\nexecutor: {type: kubernetes, image: a, cpus: 4, gpus: 2}\n");
  CHECK(part.options.resources.cpus == 2);
  CHECK(part.options.resources.gpus == 1);
}

TEST_CASE("where cpus are left out, a worker has what its pod asks for, and so has a trial") {
  const auto cpus = [](const std::string& more) {
    return read("executor:\n  type: kubernetes\n  image: a\n" + more).options.resources.cpus;
  };
  CHECK(cpus("") == 1);
  CHECK(cpus("  pod: {spec: {containers: [{name: x}]}}\n") == 1);
  CHECK(cpus("  pod: {spec: {resources: {requests: {cpu: 8}}}}\n") == 8);
  CHECK(cpus("  pod: {spec: {resources: {limits: {cpu: 2500m}}, containers: [{name: x}]}}\n") == 2.5);
  CHECK(cpus("  pod: {spec: {resources: {requests: {cpu: 8}}, containers: [{name: x, resources: {requests: {cpu: "
             "3}}}]}}\n") == 3);
  CHECK(cpus("  pod: {spec: {containers: [{name: x, resources: {requests: {cpu: 3}}}, {name: worker, resources: "
             "{requests: {cpu: '4'}}}]}}\n") == 4);
  CHECK(cpus("  cpus: 2\n  pod: {spec: {resources: {requests: {cpu: 8}}}}\n") == 2);
  CHECK(cpus("  pod: {spec: {resources: {requests: {cpu: many}}}}\n") == 1);
}

TEST_CASE("quantities of Kubernetes") {
  using hypertune::detail::quantity_of;
  CHECK(quantity_of("500m") == 0.5);
  CHECK(quantity_of("1.5") == 1.5);
  CHECK(quantity_of("4Gi") == 4.0 * (1U << 30U));
  CHECK(quantity_of("1e3") == 1000);
  CHECK(quantity_of("2k") == 2000);
  CHECK(quantity_of("1E") == 1e18);
  for (const char* wrong : {"", "m", "-1", "1 Gi", "nan", "inf", "1e999", "Gi4", "1mm"}) {
    INFO(wrong);
    CHECK_FALSE(quantity_of(wrong));
  }
  const KubernetesOptions options{.pod = "spec: {resources: {requests: {memory: 1Gi}, limits: {memory: 2Gi}}}"};
  CHECK(capacity_of(options).memory == std::uint64_t{2} << 30U);
}

TEST_CASE("what is wrong with the kubernetes executor is said with its line") {
  const std::string begin = "executor:\n  type: kubernetes\n  image: a\n  ";
  CHECK_THAT(complaint("executor: kubernets\n"), ContainsSubstring("kubernetes"));
  CHECK_THAT(complaint("executor: {type: kubernetes, images: a}\n"), ContainsSubstring("'image'"));
  CHECK_THAT(complaint("executor: {type: kubernetes}\n"), ContainsSubstring("image is missing"));
  CHECK_THAT(complaint(begin + "pool: 0\n"), ContainsSubstring("0 workers run nothing"));
  CHECK_THAT(complaint(begin + "cpus: 0\n"), ContainsSubstring("s.yaml:9"));
  CHECK_THAT(complaint(begin + "namespace: Lab\n"), ContainsSubstring("not a valid Kubernetes name"));
  CHECK_THAT(complaint(begin + "spot: sometimes\n"),
             ContainsSubstring("there are any, prefer, only, never") && !ContainsSubstring("known here"));
  CHECK_THAT(complaint(begin + "program: train\n"), ContainsSubstring("absolute path"));
  CHECK_THAT(complaint(begin + "pod: {speck: {}}\n"), ContainsSubstring("'spec'"));
  CHECK_THAT(complaint(begin + "pod: 3\n"), ContainsSubstring("must be a pod"));
  CHECK_THAT(complaint(begin + "pod:\n    spec: {nodeSelectr: {a: b}}\n"),
             ContainsSubstring("s.yaml:10") && ContainsSubstring("did you mean 'nodeSelector'?"));
  CHECK_THAT(complaint(begin + "pod: {spec: {tolerationz: []}}\n"), ContainsSubstring("did you mean 'tolerations'?"));
  CHECK_THAT(complaint(begin + "pod: {spec: {containers: [{name: worker, imagepullpolicy: Never}]}}\n"),
             ContainsSubstring("did you mean 'imagePullPolicy'?"));
  CHECK_THAT(complaint(begin + "pod: {spec: {initContainers: [{name: a, comand: [b]}]}}\n"),
             ContainsSubstring("did you mean 'command'?"));
  CHECK(complaint(begin + "pod: {spec: {somethingOfAnotherVersion: 1, containers: null}}\n") == "no error");
  CHECK_THAT(complaint(begin + "gpus: 1\n  gpu_class: Gpu\n"), ContainsSubstring("not a valid Kubernetes name"));
  CHECK_THAT(complaint(begin + "max_memory: 2GiB\n"), ContainsSubstring("memory has to be given, too"));
  CHECK_THAT(complaint(begin + "memory: 3GiB\n  max_memory: 2GiB\n"), ContainsSubstring("is below memory"));
  CHECK_THAT(complaint(begin + "gpu_class: gpu.example.org\n"), ContainsSubstring("say how many of its devices"));
  CHECK_THAT(complaint(begin + "volume: Weights\n"), ContainsSubstring("not a valid Kubernetes name"));
  CHECK_THAT(complaint(begin + "volume: w\n  transfer: {shared: {folder: weights}}\n"),
             ContainsSubstring("needs an absolute 'transfer.shared.folder', not 'weights'"));
  CHECK_THAT(complaint(begin + "volume: w\n  transfer: {shared: ~/weights}\n"),
             ContainsSubstring("needs an absolute 'transfer.shared.on_hosts', not '~/weights'"));
  CHECK_THAT(complaint(begin + "transfer: {port: 7070}\n"), ContainsSubstring("only 'direct: true' uses"));
  CHECK_THAT(complaint(begin + "image_pull_secrets: ['a b']\n"), ContainsSubstring("not a valid name of a secret"));
}
