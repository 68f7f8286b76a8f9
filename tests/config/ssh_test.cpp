// executor: {type: ssh, …}
#include "executor_sweeps.hpp"
#include "support/test.hpp"

#include <hypertune/config/override.hpp>
#include <hypertune/config/sweep.hpp>

#include <cstdlib>
#include <string>

using namespace hypertune;
using executor_sweeps::complaint;

namespace {

ExecutorOptions read(const std::string& executor) { return executor_sweeps::read(executor).executor; }

}  // namespace

TEST_CASE("hosts of the ssh executor in all forms") {
  const auto list = read(
      "executor:\n  type: ssh\n  hosts:\n    - a\n    - me@b\n    - {name: c, slots: 2, gpus: 1, memory: 8GiB, labels: "
      "[big],"
      " custom: {licence: 1}}\n  ssh_config: lab.ssh\n  cpus: 4\n");
  REQUIRE(list.ssh);
  CHECK(list.type == "ssh");
  CHECK(list.cpus == 4);
  REQUIRE(list.ssh->hosts.list.size() == 3);
  CHECK(list.ssh->hosts.list[1].name == "me@b");
  CHECK(list.ssh->hosts.list[2].slots == 2);
  CHECK(list.ssh->hosts.list[2].gpus == 1);
  CHECK(list.ssh->hosts.list[2].memory == std::uint64_t{8} << 30U);
  CHECK(list.ssh->hosts.list[2].labels.contains("big"));
  CHECK(list.ssh->hosts.list[2].custom.at("licence") == 1);
  CHECK(list.ssh->ssh.config == "lab.ssh");
  const auto file = read("executor: {type: ssh, hosts: {file: hosts.txt, interval: 2s}}\n");
  CHECK(file.ssh->hosts.file == "hosts.txt");
  CHECK(file.ssh->hosts.interval == 2);
  CHECK(read("executor: {type: ssh, hosts: {command: [./list, --all]}}\n").ssh->hosts.command ==
        std::vector<std::string>{"./list", "--all"});
  CHECK(read("executor: {type: ssh, hosts: slurm}\n").ssh->hosts.slurm);
}

TEST_CASE("file mounts, folders and ssh's own options") {
  const auto ssh = *read(
                        "executor:\n  type: ssh\n  hosts: [a]\n  user: me\n  port: 2222\n  identity_file: key\n"
                        "  options: {ProxyJump: gate, StrictHostKeyChecking: accept-new}\n  connect_timeout: 5s\n  "
                        "heartbeat_timeout: 30s\n"
                        "  workdir: ~/exp\n  cache: /scratch/cache\n"
                        "  file_mounts: {~/code: ./code, data: {from: /data/set, exclude: ['*.tmp', .git]}}\n")
                        .ssh;
  CHECK(ssh.ssh.user == "me");
  CHECK(ssh.ssh.port == 2222);
  CHECK(ssh.ssh.identity == "key");
  CHECK(ssh.ssh.options == std::vector<std::string>{"ProxyJump=gate", "StrictHostKeyChecking=accept-new"});
  CHECK(ssh.ssh.connect_timeout == 5);
  CHECK(ssh.heartbeat_timeout == 30);
  CHECK(ssh.workdir == "~/exp");
  CHECK(ssh.cache == "/scratch/cache");
  REQUIRE(ssh.file_mounts.size() == 2);
  CHECK(ssh.file_mounts[0].remote == "~/code");
  CHECK(ssh.file_mounts[0].local == "./code");
  CHECK(ssh.file_mounts[1].local == "/data/set");
  CHECK(ssh.file_mounts[1].exclude == std::vector<std::string>{"*.tmp", ".git"});
}

TEST_CASE("where the environment names hosts, a file need not") {
  ::setenv("HYPERTUNE_HOSTS", "a,b", 1);
  const auto mounts = read("executor: {type: ssh, file_mounts: {x: y}}\n");
  const auto bare = read("executor: ssh\n");
  const auto named = read("executor: {type: ssh, hosts: [c]}\n");
  ::unsetenv("HYPERTUNE_HOSTS");
  REQUIRE(mounts.ssh);
  CHECK(mounts.ssh->hosts.list.empty());
  CHECK(mounts.ssh->file_mounts.size() == 1);
  CHECK(bare.ssh);
  CHECK(named.ssh->hosts.list.size() == 1);
}

TEST_CASE("what is wrong with an ssh executor is said with its line") {
  const std::string with = "executor:\n  type: ssh\n  hosts: [a]\n  ";
  CHECK(complaint("executor: ssh") ==
        "s.yaml:6: executor ssh needs 'hosts': [host1, host2], {file: FILE}, {command: […]} or slurm, or 'cluster': "
        "CLUSTER.yaml, or HYPERTUNE_HOSTS in the environment");
  CHECK(complaint("executor: {type: ssh}").starts_with("s.yaml:6: executor ssh needs 'hosts'"));
  CHECK(complaint("executor: {type: ssh, hosts: []}").starts_with("s.yaml:6: 'executor.hosts' is empty"));
  CHECK(complaint("executor: {type: ssh, hosts: 7}").starts_with("s.yaml:6: 'executor.hosts' must be a list of hosts"));
  CHECK(complaint("executor: {type: ssh, hosts: {}}").find("one of 'file'") != std::string::npos);
  CHECK(complaint("executor: {type: ssh, hosts: {file: a, command: b}}").find("one of 'file'") != std::string::npos);
  CHECK(complaint("executor:\n  type: ssh\n  hosts:\n  - a\n  - b\n  - a\n")
            .starts_with("s.yaml:11: host 'a' is listed twice"));
  CHECK(complaint("executor: {type: ssh, hosts: [-oProxyCommand=x]}").find("is not the name of a host") !=
        std::string::npos);
  CHECK(complaint("executor: {type: ssh, hosts: [{nme: a}]}").find("did you mean 'name'") != std::string::npos);
  CHECK(complaint("executor: {type: ssh, hosts: [{name: a, slots: 0}]}").find("must be 1 or more") !=
        std::string::npos);
  CHECK(complaint(with + "sshconfig: x").starts_with("s.yaml:9: unknown key 'sshconfig' in 'executor'"));
  CHECK(complaint(with + "workers: threads").find("unknown key 'workers'") != std::string::npos);
  CHECK(complaint("executor: {type: local, hosts: [a]}").find("unknown key 'hosts'") != std::string::npos);
  CHECK(complaint(with + "port: 0").find("1 to 65535") != std::string::npos);
  CHECK(complaint(with + "heartbeat_timeout: 0s")
            .starts_with("s.yaml:9: 'executor.heartbeat_timeout' must be 1 s to 1 h"));
  CHECK(complaint(with + "heartbeat_timeout: 2h").find("must be 1 s to 1 h") != std::string::npos);
  CHECK(complaint(with + "file_mounts: {'~': x}").find("below it") != std::string::npos);
  CHECK(complaint(with + "file_mounts: {a: {fro: x}}").find("did you mean 'from'") != std::string::npos);
  CHECK(complaint(with + "file_mounts: {a: x, a/b: y}").find("lies within the file mount 'a'") != std::string::npos);
  CHECK(complaint("executor: {type: shs, hosts: [a]}").find("unknown key 'hosts'") != std::string::npos);
  CHECK(complaint("executor: {type: shs}").find("did you mean 'ssh'") != std::string::npos);
}

TEST_CASE("an executor over a cluster's machines") {
  const auto cluster = read("concurrency: 5\nexecutor: {type: ssh, cluster: c.yaml, file_mounts: {t.py: t.py}}\n");
  CHECK(cluster.ssh->cluster == "c.yaml");
  CHECK(cluster.ssh->hosts.list.empty());
  CHECK(cluster.ssh->file_mounts.size() == 1);
  const std::string with = "executor:\n  type: ssh\n  cluster: c.yaml\n  ";
  CHECK(complaint(with + "hosts: [a]") ==
        "s.yaml:8: give 'hosts' or 'cluster', not both: the machines of a cluster are those of its file");
  CHECK(complaint(with + "user: me").starts_with("s.yaml:9: 'executor.user' contradicts 'cluster': 'auth' of"));
  CHECK(complaint(with + "ssh_config: f").starts_with("s.yaml:9: 'executor.ssh_config' contradicts 'cluster'"));
  CHECK(complaint(with + "cpus: 4").starts_with("s.yaml:9: 'executor.cpus' contradicts 'cluster': 'available_node"));
  CHECK(complaint("executor: {type: ssh, cluster: ''}").starts_with("s.yaml:6: 'executor.cluster' is empty"));
  CHECK(complaint("executor: {type: local, cluster: c.yaml}").find("unknown key 'cluster'") != std::string::npos);
}

TEST_CASE("how checkpoints travel between hosts") {
  const auto plain = read("executor: {type: ssh, hosts: [a]}\n").ssh->transfer;
  CHECK(plain.by_content);
  CHECK_FALSE(plain.direct);
  CHECK(plain.rate_limit == 0);
  const auto direct =
      read(
          "executor: {type: ssh, hosts: [a], transfer: {direct: true, network: 10.1.0.0/16, port: 7070, "
          "rate_limit: 50MB}}\n")
          .ssh->transfer;
  CHECK(direct.direct);
  CHECK(direct.network == "10.1.0.0/16");
  CHECK(direct.port == 7070);
  CHECK(direct.rate_limit == 50'000'000);
  const auto wrong = [](const std::string& transfer) {
    return complaint("executor: {type: ssh, hosts: [a], transfer: " + transfer + "}\n");
  };
  CHECK_THAT(wrong("{port: 7070}"), ContainsSubstring("only 'direct: true' uses"));
  CHECK_THAT(wrong("{direct: true, port: 70000}"), ContainsSubstring("must be 1 to 65535"));
  CHECK_THAT(wrong("{direct: true, network: here}"), ContainsSubstring("write it as 10.1.0.0/16"));
  CHECK_THAT(wrong("{direct: true, by_content: false}"), ContainsSubstring("needs 'by_content'"));
  CHECK_THAT(wrong("{directly: true}"), ContainsSubstring("directly"));
  CHECK_FALSE(plain.shared);
  const auto shared = [](const std::string& text) {
    return read("executor: {type: ssh, hosts: [a], transfer: {shared: " + text + "}}\n").ssh->transfer;
  };
  CHECK(shared("true").shared);
  CHECK((shared("true").shared->folder.empty() && shared("true").shared->on_hosts.empty()));
  CHECK_FALSE(shared("false").shared);
  CHECK(shared("/mnt/run").shared);
  CHECK(shared("/mnt/run").shared->on_hosts == "/mnt/run");
  CHECK(shared("~/run").shared->on_hosts == "~/run");
  CHECK(shared("{folder: /nfs/a}").shared->folder == "/nfs/a");
  CHECK(shared("{folder: /nfs/a, on_hosts: /mnt/a}").shared->on_hosts == "/mnt/a");
  CHECK_THAT(wrong("{shared: mnt/run}"), ContainsSubstring("'executor.transfer.shared' must be a folder of the hosts"));
  CHECK_THAT(wrong("{shared: {folder: ''}}"), ContainsSubstring("is empty: name a folder of this machine"));
  CHECK_THAT(wrong("{shared: {place: /x}}"), ContainsSubstring("place"));
}
