// executor: {type: ssh, …} as read from a file: plain data.
#pragma once

#include <hypertune/files/file_mount.hpp>
#include <hypertune/hosts/checkpoint_transfer.hpp>
#include <hypertune/hosts/host_options.hpp>
#include <hypertune/hosts/ssh_options.hpp>
#include <hypertune/option.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

/// Where the hosts come from: at most one of these.
struct SshHosts {
  std::vector<HostOptions> list = {};
  std::filesystem::path file = {};
  std::vector<std::string> command = {};
  bool slurm = false;
  Seconds interval = 10;  ///< seconds between two reads of the file or runs of the command
};

/// Paths on this machine are as written: relative to the working directory, or else to the file's folder.
struct SshExecutorOptions {
  static constexpr const char* type = "ssh";
  SshHosts hosts = {};
  std::filesystem::path cluster = {};  ///< in place of hosts; without either, the environment (HYPERTUNE_HOSTS) counts
  bool grow = true;
  SshOptions ssh = {};
  Seconds heartbeat_timeout = 0;  ///< 0: the executor's default
  std::vector<FileMount> file_mounts = {};
  std::string workdir = {};  ///< on the hosts; empty: ~/hypertune/<name of the experiment>
  std::string cache = {};    ///< on the hosts; empty: ~/.cache/hypertune
  std::string notice_command = {}, notice_url = {};
  CheckpointTransfer transfer = {};  ///< how checkpoints travel between hosts

  static void describe(auto& self, auto&& option) {
    option("hosts", self.hosts, "where trials run");
    option("cluster", self.cluster, "in place of `hosts`: a CLUSTER.yaml whose machines come and go with the queue");
    option("grow", self.grow, "with `cluster`: `false` uses the machines that are up, and launches and ends none");
    SshOptions::describe(self.ssh, option);
    option("heartbeat_timeout", self.heartbeat_timeout, between(1, 3600).in(Bounds::Unit::seconds).without_default(),
           "how long without a heartbeat until a host counts as lost");
    option("file_mounts", self.file_mounts, "files that the hosts need: `{train.py: train.py}`, or with more");
    option("workdir", self.workdir, "where trials run");
    option("cache", self.cache, "where programs and files are kept by their content");
    option("notice_command", self.notice_command,
           "a command on each host that ends when the host is about to be taken away");
    option("notice_url", self.notice_url,
           "an address that answers with 200 when the host is about to be taken away (EC2's spot notice)");
    option("transfer", self.transfer, "how checkpoints are copied");
  }
};

}  // namespace hypertune::inline v0
