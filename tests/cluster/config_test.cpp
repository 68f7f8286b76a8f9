#include "support/test.hpp"
#include "support/yaml_corpus.hpp"

#include <hypertune/cluster/config.hpp>
#include <hypertune/cluster/job.hpp>

#include <filesystem>
#include <random>
#include <string>

namespace ht = hypertune;
using namespace hypertune::cluster;

namespace {

ClusterConfig parse(const std::string& text, const ClusterOverrides& overrides = {}) {
  return support::kept("cluster", text,
                       [&] { return cluster_from_yaml(ht::load_yaml_text(text, "c.yaml"), "/base", overrides); });
}

std::string complaint(const std::string& text) {
  try {
    parse(text);
  } catch (const ht::Error& error) {
    CHECK(error.code() == ht::Errc::input);
    return error.what();
  }
  return "no error";
}

const std::string local = "cluster_name: demo\nprovider: {type: local, head_ip: h, worker_ips: [a, b]}\n";

}  // namespace

TEST_CASE("a cluster of hosts that exist") {
  const auto config = parse(local + "auth: {ssh_user: me, ssh_private_key: keys/id}\nidle_timeout_minutes: 0.5\n");
  CHECK(config.name == "demo");
  CHECK(config.provider.head_ip == "h");
  CHECK(config.provider.worker_ips == std::vector<std::string>{"a", "b"});
  CHECK(config.min_workers == 2);
  CHECK(config.max_workers == 2);
  CHECK(config.auth.ssh_private_key == "/base/keys/id");
  CHECK(config.idle_timeout == 30);
  CHECK(config.head().name == "head");
  CHECK_FALSE(config.head().resources_known);
  CHECK_FALSE(config.provider.trust_new_host_keys);
  CHECK(config.warnings.empty());
}

TEST_CASE("the old form: head_node and worker_nodes") {
  const auto config = parse(R"(
cluster_name: default
min_workers: 1
max_workers: 4
initial_workers: 2
autoscaling_mode: default
target_utilization_fraction: 0.8
docker: {image: "", container_name: ""}
provider: {type: aws, region: us-west-2, availability_zone: "us-west-2a, us-west-2b"}
auth: {ssh_user: ubuntu}
head_node: {InstanceType: m5.large, ImageId: ami-1, BlockDeviceMappings: [{DeviceName: /dev/sda1, Ebs: {VolumeSize: 100}}]}
worker_nodes: {InstanceType: m5.large, ImageId: ami-1, InstanceMarketOptions: {MarketType: spot}}
head_start_ray_commands: [ray stop]
file_mounts: {}
setup_commands: [one, "two: 2"]
)");
  CHECK(config.min_workers == 2);
  CHECK(config.max_workers == 4);
  REQUIRE(config.types.size() == 2);
  CHECK(config.types[0].spot == Spot::never);
  CHECK(config.types[1].spot == Spot::prefer);
  CHECK(config.types[1].max_workers == 4);
  CHECK(config.head().max_workers == 0);
  CHECK(
      config.head().node_config ==
      R"({"InstanceType":"m5.large","ImageId":"ami-1","BlockDeviceMappings":[{"DeviceName":"/dev/sda1","Ebs":{"VolumeSize":100}}]})");
  CHECK(config.provider.availability_zones == std::vector<std::string>{"us-west-2a", "us-west-2b"});
  CHECK(config.setup_commands == std::vector<std::string>{"one", "two: 2"});
  REQUIRE(config.warnings.size() == 1);  // one line names all
  CHECK_THAT(config.warnings[0], ContainsSubstring("head_start_ray_commands"));
  CHECK_THAT(config.warnings[0], ContainsSubstring("target_utilization_fraction"));
  CHECK_THAT(config.warnings[0], !ContainsSubstring("docker"));
}

TEST_CASE("node types with resources, prices and spot") {
  const auto config = parse(R"(
cluster_name: types
max_workers: 10
provider: {type: command, command: [./make, --fast], settings: {zone: z1, n: 3}}
available_node_types:
  small: {resources: {CPU: 4}, node_config: {size: s}, price: 0.2, max_workers: 3}
  big:
    resources: {CPU: 16, GPU: 2, memory: 64GiB, licence: 1}
    min_workers: 1
    price: {on_demand: 3.2, spot: 1.1}
    spot: true
    worker_setup_commands: [only here]
  odd: {spot: only, resources: {}}
head_node_type: small
worker_nodes: {image: base, size: other}
)");
  CHECK(config.provider.command == std::vector<std::string>{"/base/make", "--fast"});
  CHECK(config.provider.settings == R"({"zone":"z1","n":3})");
  REQUIRE(config.find_type("big") != nullptr);
  const auto& big = *config.find_type("big");
  CHECK(big.resources.cpus == 16);
  CHECK(big.resources.gpus == 2);
  CHECK(big.resources.memory == (std::uint64_t{64} << 30U));
  CHECK(big.resources.custom.at("licence") == 1);
  CHECK(big.price == 3.2);
  CHECK(big.spot_price == 1.1);
  CHECK(big.spot == Spot::prefer);
  CHECK(big.max_workers == 10);
  CHECK(big.own_setup_commands);
  CHECK(big.node_config == R"({"image":"base","size":"other"})");  // what all workers share
  CHECK(config.find_type("small")->node_config == R"({"size":"s"})");
  CHECK(config.find_type("odd")->spot == Spot::only);
  CHECK_FALSE(config.find_type("odd")->resources_known);
  CHECK(config.find_type("none") == nullptr);
}

TEST_CASE("a head type without max_workers is that of the head alone, as in Ray") {
  const std::string start = "cluster_name: x\nprovider: {type: command, command: p}\nhead_node_type: h\n";
  const auto config =
      parse(start + "max_workers: 7\navailable_node_types:\n  h: {priority: -2, idle_timeout_s: 30}\n  w: {}\n");
  CHECK(config.head().max_workers == 0);
  CHECK(config.find_type("w")->max_workers == 7);
  CHECK(config.head().priority == -2);
  CHECK(config.head().idle_timeout == 30.0);
  CHECK(config.find_type("w")->priority == 0);
  CHECK_FALSE(config.find_type("w")->idle_timeout);
  CHECK(config.warnings.empty());
  CHECK(parse(start + "available_node_types:\n  h: {max_workers: 3}\n").head().max_workers == 3);
  CHECK(parse(start + "available_node_types:\n  h: {min_workers: 2}\n").head().max_workers == 2);
  CHECK_FALSE(parse(start + "available_node_types:\n  h: {idle_timeout_s: null}\n").head().idle_timeout);
  CHECK(parse(start + "available_node_types:\n  h: {}\n").head().max_workers == 0);
  CHECK_THAT(complaint(start + "min_workers: 2\navailable_node_types:\n  h: {}\n"),
             ContainsSubstring("workers are wanted (2), but the node types allow 0: give 'max_workers' to one"));
  CHECK(parse(local + "head_node_type: h\navailable_node_types:\n  h: {}\n").head().max_workers ==
        2);  // hosts are given
  CHECK_THAT(complaint(start + "available_node_types:\n  h: {priority: high}\n"), ContainsSubstring("whole number"));
  CHECK_THAT(complaint(start + "available_node_types:\n  h: {idle_timeout_s: -1}\n"), ContainsSubstring("0 or more"));
}

TEST_CASE("what the command line says has the last word") {
  const auto config = parse(local + "min_workers: 1\n", {.name = "other", .min_workers = 2, .max_workers = {}});
  CHECK(config.name == "other");
  CHECK(config.min_workers == 2);
  const auto more = parse("cluster_name: x\nprovider: {type: command, command: p}\nmax_workers: 2\n",
                          {.name = {}, .min_workers = 5, .max_workers = {}});
  CHECK(more.max_workers == 5);
  CHECK_THROWS_AS(parse(local, {.name = {}, .min_workers = 3, .max_workers = 1}), ht::Error);
  CHECK_THROWS_AS(parse(local, {.name = "a/b", .min_workers = {}, .max_workers = {}}), ht::Error);
}

TEST_CASE("mistakes are named with line and the nearest key") {
  const auto check = [](const std::string& text, const std::string& part) {
    CHECK_THAT(complaint(text), ContainsSubstring(part));
  };
  check(local + "max_worker: 3\n", "c.yaml:3: unknown key 'max_worker' in this file: did you mean 'max_workers'?");
  check("provider: {type: local}\n", "has no 'cluster_name'");
  check("cluster_name: a b\nprovider: {type: local, head_ip: h}\n", "c.yaml:1: 'cluster_name' must be up to 63");
  check("cluster_name: a\nprovider: {type: loacl}\n", "c.yaml:2: there is no provider 'loacl': did you mean 'local'?");
  check("cluster_name: a\nprovider: {type: local}\n", "needs hosts");
  check("cluster_name: a\nprovider: {type: local, head_ip: h, worker_ips: [b, h]}\n", "'h' is named twice");
  check("cluster_name: a\nprovider: {type: local, head_ip: -oProxyCommand=x}\n", "is no host name");
  check("cluster_name: a\nprovider: {type: command}\n", "has no 'command'");
  check("cluster_name: a\nprovider: {type: aws, regoin: x}\n", "did you mean 'region'?");
  check(local + "min_workers: -1\n", "'min_workers' must be 0 or more");
  check(local + "min_workers: many\n", "must be a whole number");
  check(local + "idle_timeout_minutes: never\n", "must be a number");
  check(local + "auth: {ssh_usr: me}\n", "did you mean 'ssh_user'?");
  check(local + "auth: {ssh_user: -x}\n", "cannot be");
  check(local + "setup_commands: {a: b}\n", "must be a list of shell commands");
  check(local + "available_node_types:\n  a: {}\n  b: {}\n", "'head_node_type' is missing");
  check(local + "available_node_types:\n  gpu: {}\nhead_node_type: gpv\n", "c.yaml:5: 'head_node_type' is 'gpv'");
  check(local + "available_node_types:\n  a: {resources: {CPU: -1}}\n", "must be 0 or more");
  check(local + "available_node_types:\n  a: {min_workers: 3, max_workers: 2}\n", "more than its max_workers");
  check(local + "available_node_types:\n  a: {spot: preferr}\n", "did you mean 'prefer'?");
  check(local + "available_node_types:\n  a: {price: {spott: 1}}\n", "did you mean 'spot'?");
  check(local + "head_node_type: x\n", "there are none");
  check("", "empty");
  check("[1, 2]", "must be a map");
}

TEST_CASE("every example parses, and none of it needs a warning") {
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(HYPERTUNE_SOURCE_DIR "/examples/cluster")) {
    if (entry.path().extension() != ".yaml") continue;
    INFO(entry.path().string());
    const auto config = load_cluster(entry.path());
    CHECK(config.warnings.empty());
    CHECK_FALSE(config.name.empty());
    ++seen;
  }
  CHECK(seen >= 4);
}

TEST_CASE("files in the words of Ray's own examples") {
  // Their keys, as its users have them in use; the texts are ours.
  for (const char* text :
       {"cluster_name: minimal\nmax_workers: 1\nprovider:\n  type: aws\n  region: us-west-2\n  availability_zone: "
        "us-west-2a\n"
        "  security_group:\n    GroupName: g\n    IpPermissions:\n      - {FromPort: 443, ToPort: 443, IpProtocol: "
        "TCP}\n"
        "auth:\n  ssh_user: ubuntu\n",
        "cluster_name: gcp\nmin_workers: 0\nmax_workers: 2\nprovider:\n  type: gcp\n  region: us-west1\n  project_id: "
        "null\n"
        "head_node:\n  machineType: n1\n  disks:\n    - {boot: true, initializeParams: {diskSizeGb: 50}}\n",
        "cluster_name: k\nprovider:\n  type: kubernetes\n  use_internal_ips: true\n  namespace: ray\n  services:\n    "
        "- {kind: Service}\navailable_node_types:\n  ray.head.default:\n    resources: {}\n    node_config: "
        "{apiVersion: v1, "
        "kind: Pod, metadata: {generateName: ray-}, spec: {restartPolicy: Never, containers: [{name: ray-node, image: "
        "rayproject/ray}]}}\nhead_node_type: ray.head.default\n",
        "cluster_name: az\nprovider: {type: azure, location: westus2, resource_group: r}\nauth: {ssh_user: ubuntu, "
        "ssh_private_key: ~/.ssh/id_rsa, ssh_public_key: ~/.ssh/id_rsa.pub}\n",
        "cluster_name: manual\nprovider:\n  type: local\n  head_ip: YOUR_HEAD\n  worker_ips: [W1, W2, ... ]\nauth:\n  "
        "ssh_user: YOU\n",
        "cluster_name: full\nmax_workers: 2\nupscaling_speed: 1.0\ndocker:\n  image: x\n  pull_before_run: True\n  "
        "run_options:\n"
        "    - --ulimit nofile=65536:65536\nidle_timeout_minutes: 5\nprovider: {type: aws, region: r, "
        "cache_stopped_nodes: True}\n"
        "auth: {ssh_user: ubuntu}\navailable_node_types:\n  ray.head.default:\n    resources: {}\n    node_config: "
        "{InstanceType: "
        "m5.large, ImageId: ami-1}\n  ray.worker.default:\n    min_workers: 1\n    max_workers: 2\n    resources: {}\n"
        "    node_config: {InstanceType: m5.large, ImageId: ami-1, InstanceMarketOptions: {MarketType: spot}}\n"
        "head_node_type: ray.head.default\nfile_mounts: {}\ncluster_synced_files: []\nfile_mounts_sync_continuously: "
        "False\n"
        "rsync_exclude: [\"**/.git\", \"**/.git/**\"]\nrsync_filter: [\".gitignore\"]\ninitialization_commands: []\n"
        "setup_commands: []\nhead_setup_commands: []\nworker_setup_commands: []\nhead_start_ray_commands: [ray stop]\n"
        "worker_start_ray_commands: [ray stop]\n"}) {
    INFO(text);
    CHECK_NOTHROW(parse(text));
  }
}

TEST_CASE("any bytes end in a configuration or in an Error") {
  const std::string seed =
      local +
      "available_node_types:\n  a: {resources: {CPU: 4}, spot: true, price: {spot: 1}}\nfile_mounts: {~/x: y}\n";
  std::mt19937 random(7);
  int parsed = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = seed;
    for (int change = 0; change < 3; ++change) {
      const auto at = random() % text.size();
      switch (random() % 3) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text.erase(at, random() % 9); break;
        default: text.insert(at, text.substr(random() % text.size(), random() % 12)); break;
      }
      if (text.empty()) text = "a";
    }
    try {
      parse(text);
      ++parsed;
    } catch (const ht::Error&) {}
  }
  CHECK(parsed > 0);
}

TEST_CASE("a job's environment says how the machines are reached, and where they are warned") {
  const std::string local = "cluster_name: it\nprovider: {type: local, head_ip: h, worker_ips: [w]}\n";
  auto text = ht::cluster::detail::job_environment(parse(local));
  CHECK_THAT(text, ContainsSubstring("HYPERTUNE_CLUSTER='it'") || ContainsSubstring("HYPERTUNE_CLUSTER=it"));
  CHECK_THAT(text, ContainsSubstring("HYPERTUNE_HOSTS=\"$HOME/.hypertune/clusters/it/hosts\""));
  CHECK_THAT(text, !ContainsSubstring("NOTICE"));
  auto config = parse(local);
  config.provider.type = "aws";
  CHECK_THAT(ht::cluster::detail::job_environment(config),
             ContainsSubstring(" HYPERTUNE_NOTICE_URL=http://169.254.169.254/"));
}
