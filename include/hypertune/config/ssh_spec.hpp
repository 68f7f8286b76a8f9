// executor: {type: ssh, …} as read from a file: plain data.
#pragma once

#include <hypertune/files/file_mount.hpp>
#include <hypertune/hosts/checkpoint_transfer.hpp>
#include <hypertune/hosts/host_spec.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

/// Paths on this machine are as written: relative to the working directory, or else to the file's folder.
struct SshSpec {
  // Where the hosts come from: exactly one of these, or else the environment (HYPERTUNE_HOSTS).
  std::vector<HostSpec> hosts;
  std::filesystem::path host_file;
  std::vector<std::string> host_command;
  bool slurm = false;
  std::filesystem::path cluster;  ///< a CLUSTER.yaml, whose machines are launched as the queue needs them
  bool grow = true;               ///< whether machines are launched and terminated for the queue
  double interval = 10;           ///< seconds between two reads of the file or runs of the command

  std::filesystem::path ssh_config, identity_file;
  std::string user;
  int port = 0;
  std::vector<std::string> options;  ///< "Key=value", as for `ssh -o`
  double connect_timeout = 10;       ///< seconds
  double silence = 0;                ///< seconds without a message until a host is lost; 0: the executor's default
  std::vector<FileMount> file_mounts;
  std::string workdir;                     ///< on the hosts; empty: ~/hypertune/<name of the experiment>
  std::string cache;                       ///< on the hosts; empty: ~/.cache/hypertune
  std::string notice_command, notice_url;  ///< how a host learns that it will be taken away
  CheckpointTransfer transfer;             ///< how checkpoints travel between hosts
};

}  // namespace hypertune::inline v0
