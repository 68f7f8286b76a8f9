// executor: {type: ssh, …} as read from a file: plain data.
#pragma once

#include <hypertune/files/file_mount.hpp>
#include <hypertune/hosts/checkpoint_transfer.hpp>
#include <hypertune/hosts/host_options.hpp>
#include <hypertune/option.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

/// Paths on this machine are as written: relative to the working directory, or else to the file's folder.
struct SshSpec {
  static constexpr const char* type = "ssh";
  // Where the hosts come from: exactly one of these, or else the environment (HYPERTUNE_HOSTS).
  std::vector<HostOptions> hosts;
  std::filesystem::path host_file;
  std::vector<std::string> host_command;
  bool slurm = false;
  std::filesystem::path cluster;
  bool grow = true;
  double interval = 10;  ///< seconds between two reads of the file or runs of the command

  std::filesystem::path ssh_config, identity_file;
  std::string user;
  int port = 0;
  std::vector<std::string> options;  ///< "Key=value", as for `ssh -o`
  double connect_timeout = 10;
  double heartbeat_timeout = 0;  ///< 0: the executor's default
  std::vector<FileMount> file_mounts;
  std::string workdir;  ///< on the hosts; empty: ~/hypertune/<name of the experiment>
  std::string cache;    ///< on the hosts; empty: ~/.cache/hypertune
  std::string notice_command, notice_url;
  CheckpointTransfer transfer;  ///< how checkpoints travel between hosts

  static void describe(auto& self, auto&& option) {
    using Unit = Bounds::Unit;
    option("cluster", self.cluster, "in place of `hosts`: a CLUSTER.yaml whose machines come and go with the queue");
    option("grow", self.grow, "with `cluster`: `false` uses the machines that are up, and launches and ends none");
    option("ssh_config", self.ssh_config, "in place of `~/.ssh/config`");
    option("identity_file", self.identity_file, "a private key");
    option("user", self.user, "the account on the hosts");
    option("port", self.port, between(1, 65535).without_default(), "of the hosts' SSH servers");
    option("connect_timeout", self.connect_timeout, at_least(1).in(Unit::seconds),
           "how long a host may take to answer a login");
    option("heartbeat_timeout", self.heartbeat_timeout, between(1, 3600).in(Unit::seconds).without_default(),
           "how long without a heartbeat until a host counts as lost");
    option("workdir", self.workdir, "where trials run");
    option("cache", self.cache, "where programs and files are kept by their content");
    option("notice_command", self.notice_command,
           "a command on each host that ends when the host is about to be taken away");
    option("notice_url", self.notice_url, "… or an address that says so (EC2's spot notice)");
  }
};

}  // namespace hypertune::inline v0
