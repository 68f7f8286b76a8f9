// AgentFiles: what an agent on a host needs there, and how it is started.
#pragma once

#include <hypertune/files/file_mount.hpp>
#include <hypertune/hosts/host_spec.hpp>
#include <hypertune/remote/host_shell.hpp>
#include <hypertune/remote/shipping.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace hypertune::inline v0::remote {

/// Meant for designated initialisers.
struct AgentFiles {
  /// A program that becomes an agent when it is called with the arguments below and then `--hypertune-agent`. Empty:
  /// this program itself.
  std::filesystem::path program = {};
  std::vector<std::string> arguments = {};
  std::vector<FileMount> mounts = {};  ///< relative places are below the working folder
  /// Programs among them, by where they are here: checked for architecture and libraries before anything runs.
  std::vector<std::filesystem::path> programs = {};
  /// What has to be there before a trial runs: names to be found in PATH, or paths from the working folder.
  std::vector<std::string> needs = {};
  std::string directory = {};  ///< where the agent and commands work; empty: the home folder
  ShipOptions ship = {};
  bool shared = false;  ///< other accounts of the same group use the disk, too: see CheckpointTransfer::shared
};

/// Brings all of it there and looks whether it does. Returns the command that starts the agent there, of a host with
/// these limits. HostError, or what the shell throws.
std::vector<std::string> prepare_agent(const HostShell& shell, const AgentFiles& files, const HostSpec& limits);

}  // namespace hypertune::inline v0::remote
