// AgentFiles: the files that an agent needs on a host, and how it is started.
#pragma once

#include <hypertune/files/file_mount.hpp>
#include <hypertune/hosts/host_options.hpp>
#include <hypertune/remote/host_shell.hpp>
#include <hypertune/remote/shipping.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace hypertune::inline v0::remote {

/// Meant for designated initialisers.
struct AgentFiles {
  /// A program that becomes an agent when called with the arguments below and then `--hypertune-agent`. Empty: this
  /// program itself.
  std::filesystem::path program = {};
  std::vector<std::string> arguments = {};
  std::vector<FileMount> mounts = {};  ///< relative targets are below the working folder
  /// Local paths of the programs among the mounts; their architecture and libraries are checked before anything runs.
  std::vector<std::filesystem::path> programs = {};
  /// What must exist on the host before a trial runs: names found in PATH, or paths relative to the working folder.
  std::vector<std::string> needs = {};
  std::string directory = {};  ///< working folder of the agent and commands; empty: the home folder
  ShipOptions ship = {};
  bool shared = false;  ///< other users of the same group share the disk; see CheckpointTransfer::shared
};

/// Copies the files to the host and checks them. Returns the command that starts an agent there, with these limits.
/// Throws HostError, or the shell's errors.
std::vector<std::string> prepare_agent(const HostShell& shell, const AgentFiles& files, const HostOptions& limits);

}  // namespace hypertune::inline v0::remote
