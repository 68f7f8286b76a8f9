// executor: {type: ssh, …} as read from a file: plain data.
#pragma once

#include <hypertune/files/file_mount.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace hypertune {

/// A host and what trials may use of it; what is not said is what the machine has.
struct SshHostText {
  std::string name;
  int slots = 0;
  double cpus = 0, gpus = -1;
  std::uint64_t memory = 0;
  std::map<std::string, double> custom;
  std::map<std::string, std::string> labels;
};

/// transfer: how checkpoints travel between hosts.
struct SshTransferText {
  bool by_content = true, direct = false;
  std::string network;
  int port = 0;
  std::uint64_t rate_limit = 0;  ///< bytes per second of each sender; 0: none
  bool shared = false;           ///< a folder that the hosts have, too:
  std::filesystem::path folder;  ///< on this machine; empty: the experiment's own
  std::string on_hosts;          ///< on them; empty: at the same place
};

/// Paths of this machine are as written: relative to where the command is called, or else to the file's folder.
struct SshText {
  // Where the hosts come from: exactly one of these, or else the environment (HYPERTUNE_HOSTS).
  std::vector<SshHostText> hosts;
  std::filesystem::path host_file;
  std::vector<std::string> host_command;
  bool slurm = false;
  std::filesystem::path cluster;  ///< a CLUSTER.yaml, whose machines come and go with the queue
  double interval = 10;           ///< seconds between looks at the file or command

  std::filesystem::path ssh_config, identity_file;
  std::string user;
  int port = 0;
  std::vector<std::string> options;  ///< "Key=value", as of `ssh -o`
  double connect_timeout = 10;       ///< seconds
  double silence = 0;                ///< seconds without a sign of life until a host is lost; 0: the executor's own
  std::vector<FileMount> file_mounts;
  std::string workdir;                     ///< on the hosts; empty: ~/hypertune/<name of the experiment>
  std::string cache;                       ///< on the hosts; empty: ~/.cache/hypertune
  std::string notice_command, notice_url;  ///< how a host learns that it will be taken away
  SshTransferText transfer;
};

}  // namespace hypertune
